// Records a window of decode steps as the trace that `culprit` reads (Kineto's Chrome JSON): steps,
// operators with shapes and source lines, launches, and the work that they start on streams.
//
// A Session counts the steps, records those of its window and then writes the file on a thread of
// its own. Off, or outside the window, a span costs one load and one predictable branch. Inside it
// costs two readings of the clock and 60 to 200 bytes of a buffer set up in advance: no lock, and no
// allocation by a thread that has been seen before (the step in front of the window is there for
// that). Times are those of one monotonic clock for all threads, kept as integers. A full
// buffer ends the window: the steps recorded whole are written, and the rest is told.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::profile {

// A text that outlives the session, recorded as a pointer: a literal, or what intern() keeps.
class Name {
 public:
  constexpr Name() = default;
  template <std::size_t N>
  consteval Name(const char (&literal)[N])  // NOLINT: implicit by design
      : text_(literal), size_(N - 1) {}
  // Without a copy: the caller vows that `text` outlives the session.
  static constexpr Name lasting(std::string_view text) { return Name(text.data(), text.size()); }
  constexpr std::string_view view() const { return {text_, size_}; }

 private:
  constexpr Name(const char* text, std::size_t size)
      : text_(text), size_(static_cast<std::uint32_t>(size)) {}
  const char* text_ = "";
  std::uint32_t size_ = 0;
};
Name intern(std::string_view text);  // kept for the life of the process; takes a lock

// A line of source. std::source_location would do; clang 14 has none with libstdc++ 12.
struct Location {
  const char* file = "";  // the texts outlive the session
  const char* function = "";
  std::uint32_t line = 0;
  static constexpr Location here(const char* file = __builtin_FILE(),
                                 const char* function = __builtin_FUNCTION(),
                                 std::uint32_t line = __builtin_LINE()) {
    return {file, function, line};
  }
};

// An operator's name, and the line that calls it: where the name is written, unless told.
struct Call {
  template <std::size_t N>
  consteval Call(const char (&text)[N], Location line = Location::here())  // NOLINT: implicit
      : name(text), where(line) {}
  constexpr Call(Name text, Location line = Location::here())  // NOLINT: implicit by design
      : name(text), where(line) {}
  Name name;
  Location where;
};

// An input of an operator, its shape and element type. No extents: a scalar. The extents are read
// when the operator begins.
struct Tensor {
  Name type;
  std::span<const std::int64_t> dims;
};

// The same with its extents: what kBf16(8, 6144) gives.
template <std::size_t Rank>
struct Shaped {
  Name type;
  std::array<std::int64_t, Rank> dims;
};

// Element types in PyTorch's words, which readers of traces know; any other name will do.
struct Dtype {
  Name name;
  template <class... Extents>
  constexpr Shaped<sizeof...(Extents)> operator()(Extents... extents) const {
    return {name, {static_cast<std::int64_t>(extents)...}};
  }
};
inline constexpr Dtype kFloat{"float"}, kBf16{"c10::BFloat16"}, kHalf{"c10::Half"},
    kE4m3{"c10::Float8_e4m3fn"}, kE5m2{"c10::Float8_e5m2"}, kE2m1{"c10::Float4_e2m1fn_x2"},
    kInt8{"signed char"}, kUint8{"unsigned char"}, kInt32{"int"}, kInt64{"long int"};

// "step[DECODE bs=8 toks=8]"
struct Mark {
  std::int64_t batch = 0;   // requests; 0: left out
  std::int64_t tokens = 0;  // new tokens; 0: left out
  Name kind = "DECODE";     // or EXTEND, MIXED, IDLE, TARGET_VERIFY, DRAFT_...
};

// The host calls that readers of traces know; any other name will do.
inline constexpr Name kLaunchKernel = "cudaLaunchKernel", kLaunchGraph = "cudaGraphLaunch",
                      kCopyAsync = "cudaMemcpyAsync", kFillAsync = "cudaMemsetAsync",
                      kCopyAndWait = "cudaMemcpy", kWaitForStream = "cudaStreamSynchronize",
                      kWaitForDevice = "cudaDeviceSynchronize";
inline constexpr Name kCopyIn = "Memcpy HtoD (Pinned -> Device)",
                      kCopyOut = "Memcpy DtoH (Device -> Pinned)",
                      kCopyWithin = "Memcpy DtoD (Device -> Device)", kFill = "Memset (Device)";

// Where work runs, and what it is.
struct Work {
  std::int32_t stream = 0, device = 0;
  std::array<std::uint32_t, 3> grid{}, block{};  // zeros: it has none
  std::int64_t bytes = 0;                        // that it must move; 0: not told
};

// What a collective sends.
struct Message {
  Name collective = {};                            // "allreduce"
  Name dtype = {};                                 // "BFloat16"
  std::int64_t in_elements = 0, out_elements = 0;  // of one rank
  std::int64_t ranks = 1;                          // of the group
  Name group = "tp";
  Name members = {};  // "[0, 1, 2, 3]"
};

// Of the launch whose work it goes with, to the thread that does the work. 0: not recorded.
struct Ticket {
  std::uint64_t id = 0;
};

namespace detail {

enum Mode : std::uint32_t { kOff, kCounting, kArmed, kRecording };
extern std::atomic<std::uint32_t> mode;
struct Record;
struct Log;
class Recorder;
struct Place {  // of a span that is open; no record: it is not recorded
  Record* record = nullptr;
  Log* log = nullptr;
};
Place begin_step(Mark mark, Name name, bool& counted) noexcept;
void end_step(Place place) noexcept;
void end(Place place) noexcept;

// An operator is begun in two parts, so that its inputs are written where they stay.
struct Input {  // its extents stand behind it
  Name type;
  std::size_t rank = 0;
};
struct OpenOp {
  Place place;
  std::byte* inputs = nullptr;  // null: it has none, or they take more than 4 kB and are left out
};
OpenOp open_op(const Call& call, std::size_t inputs, std::size_t input_bytes) noexcept;
void start(Place place) noexcept;
template <class T>
concept AnyTensor = requires(const T& tensor) {
  tensor.type.view();
  tensor.dims.size();
};
constexpr std::size_t bytes_of(const AnyTensor auto& tensor) {
  return sizeof(Input) + tensor.dims.size() * sizeof(std::int64_t);
}
std::byte* write(std::byte* at, const AnyTensor auto& tensor) {
  auto* input = new (at) Input{tensor.type, tensor.dims.size()};
  auto* extents = reinterpret_cast<std::int64_t*>(input + 1);
  for (const std::int64_t extent : tensor.dims) *extents++ = extent;
  return at + bytes_of(tensor);
}
Place begin_launch(Name call, std::uint32_t works, Ticket& ticket) noexcept;
Place begin_wait(Name call) noexcept;
// What is passed by value costs nothing where the branch is not taken.
Place begin_kernel(Ticket ticket, Name name, Work work) noexcept;
Place begin_copy(Ticket ticket, Name what, Work work) noexcept;
Place begin_collective(Ticket ticket, Name name, Message message, Work work) noexcept;

}  // namespace detail

// Whether spans are recorded now; for engines that would have to compute what they tell.
inline bool recording() { return detail::mode.load(std::memory_order_relaxed) >= detail::kArmed; }

// What lasts from its construction to its end, on one thread; spans of a thread nest.
class Span {
 public:
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 protected:
  Span() = default;
  ~Span() {
    if (place_.record != nullptr) [[unlikely]]
      detail::end(place_);
  }
  detail::Place place_;
};

// One step of the engine, on the thread that launches its work. The window is counted in steps; one
// inside another is a mark and not counted. One thread at a time makes steps.
class [[nodiscard]] Step {
 public:
  explicit Step(const Mark& mark) : Step(mark, {}) {}
  explicit Step(Name name) : Step({}, name) {}  // for marks of another form
  ~Step() {
    if (counted_) [[unlikely]]
      detail::end_step(place_);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  Step(Mark mark, Name name) {
    if (detail::mode.load(std::memory_order_relaxed) != detail::kOff) [[unlikely]]
      place_ = detail::begin_step(mark, name, counted_);
  }
  detail::Place place_;
  bool counted_ = false;
};

// An operator, or any work of the host's own that should have a name:
//   const Op op("aten::mm", kBf16(batch, width), kBf16(width, rows));
// Of inputs that take more than 4 kB (100 of two dimensions) none is kept.
class [[nodiscard]] Op : public Span {
 public:
  template <detail::AnyTensor... Tensors>
  explicit Op(Call call, const Tensors&... inputs) {
    if (recording()) [[unlikely]] {
      const Call kept = call;
      auto [place, at] = detail::open_op(kept, sizeof...(inputs),
                                         (std::size_t{0} + ... + detail::bytes_of(inputs)));
      if (at != nullptr) ((at = detail::write(at, inputs)), ...);
      if (place.record != nullptr) detail::start(place);
      place_ = place;
    }
  }
  Op(Call call, std::span<const Tensor> inputs) {
    if (recording()) [[unlikely]] {
      std::size_t bytes = 0;
      for (const Tensor& input : inputs) bytes += detail::bytes_of(input);
      auto [place, at] = detail::open_op(call, inputs.size(), bytes);
      if (at != nullptr)
        for (const Tensor& input : inputs) at = detail::write(at, input);
      if (place.record != nullptr) detail::start(place);
      place_ = place;
    }
  }
};

// The host call that hands `works` pieces of work to streams: one, or those of a whole graph.
class [[nodiscard]] Launch : public Span {
 public:
  explicit Launch(Name call = kLaunchKernel, std::uint32_t works = 1) {
    if (recording()) [[unlikely]]
      place_ = detail::begin_launch(call, works, ticket_);
  }
  Ticket ticket() const { return ticket_; }

 private:
  Ticket ticket_;
};

// The host waits for what it launched.
class [[nodiscard]] Wait : public Span {
 public:
  explicit Wait(Name call = kWaitForStream) {
    if (recording()) [[unlikely]]
      place_ = detail::begin_wait(call);
  }
};

// Work on a stream, on whatever thread does it.
class [[nodiscard]] Kernel : public Span {
 public:
  Kernel(Ticket ticket, Name name, const Work& work = {}) {
    if (ticket.id != 0) [[unlikely]]
      place_ = detail::begin_kernel(ticket, name, work);
  }
};

class [[nodiscard]] Copy : public Span {
 public:
  Copy(Ticket ticket, Name what, const Work& work) {
    if (ticket.id != 0) [[unlikely]]
      place_ = detail::begin_copy(ticket, what, work);
  }
};

class [[nodiscard]] Collective : public Span {
 public:
  Collective(Ticket ticket, Name name, const Message& message, const Work& work = {}) {
    if (ticket.id != 0) [[unlikely]]
      place_ = detail::begin_collective(ticket, name, message, work);
  }
};

// The calling thread's name in the trace. Also sets up its buffer, while a session lasts.
void name_thread(std::string_view name);

struct Device {
  std::int32_t id = 0;
  std::string name = {};    // "AMD EPYC 9654, 16 threads"
  double bytes_per_s = 0;   // of its memory; 0: not known, likewise below
  std::int32_t cores = 0;   // written as numSms
  std::int64_t memory = 0;  // bytes
};

struct Options {
  bool on = false;
  std::int64_t warmup = 20, steps = 30;  // the window: steps [warmup, warmup + steps)
  // ".gz": compressed. With several ranks "-rank<n>" is put in front of ".trace" or the extension.
  std::string output = "decode.trace.json.gz";
  std::int32_t rank = 0, ranks = 1;
  std::string backend = "mpi";                       // of the ranks
  std::vector<Device> devices = {};                  // empty: nothing is said of them
  std::size_t buffer_bytes = std::size_t{64} << 20;  // of all threads together
  // CULPRIT_PROFILE_DECODE=1|0, _WARMUP, _STEPS and _OUTPUT beat what is set here.
  bool environment = true;
};

struct Error {
  std::string what, where, hint;
  std::string text() const;  // "what: where (hint)"
};

struct Report {
  std::optional<Error> error;  // nothing was written
  std::string trace;           // the file; empty: nothing was written
  std::string summary;         // a table of the kernels, and all that is missing in the trace
  std::int64_t steps = 0;      // written
  std::int64_t events = 0;     // written
  std::int64_t lost = 0;       // not written, as the buffer was full or work did not end
};

// At most one lasts at a time. It is made and finished while no span is open; the engine's threads
// are idle or gone when it ends.
class Session {
 public:
  explicit Session(Options options = {});
  ~Session();  // finishes
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool on() const { return recorder_ != nullptr; }
  const std::optional<Error>& error() const { return error_; }  // why it is not on
  // Between two steps: steps are neither recorded nor counted until resume(). For measuring what
  // recording costs, and for work that is no decode.
  void pause();
  void resume();
  // Waits for the file; ends the window if it has not ended. Off: an empty report.
  Report finish();

 private:
  std::unique_ptr<detail::Recorder> recorder_;
  std::optional<Error> error_;
};

}  // namespace culprit::profile
