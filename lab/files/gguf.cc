#include "lab/files/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "lab/files/layout.h"

namespace culprit::lab {
namespace {

constexpr std::uint64_t kUsualAlignment = 32, kMostAlignment = std::uint64_t{1} << 20;
constexpr std::uint32_t kMostDims = 4;

// Types of a value, by their numbers in a file.
enum ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
constexpr std::size_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // 0: varies

}  // namespace

// Reads on from byte to byte. The first fault stays; from then on all reads give zeros.
class Gguf::Reader {
 public:
  Reader(Gguf& file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

  Status run() {
    read_magic();
    const auto tensors = number<std::uint64_t>("the number of tensors");
    const auto keys = number<std::uint64_t>("the number of keys");
    for (std::uint64_t i = 0; i < keys && !error_; ++i) read_key();
    const std::uint64_t alignment = read_alignment();
    for (std::uint64_t i = 0; i < tensors && !error_; ++i) read_tensor();
    if (!error_) place_tensors(alignment);
    if (error_) return *error_;
    return ranges_.apart();
  }

 private:
  void fail(std::string what, std::size_t at, Error::Code code = Error::Code::kBadInput,
            std::string_view hint =
                "the file is damaged or was not written completely; fetch it "
                "again") {
    if (!error_)
      error_ = {code, std::move(what), fmt::format("{}: byte {}", file_.path_, at),
                std::string(hint)};
  }

  // The next `count` bytes; empty, and a fault, where the file ends before.
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (!error_ && count > bytes_.size() - at_)
      fail(fmt::format("the file ends within {}", what), at_);
    if (error_) return {};
    const auto part = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += part.size();
    return part;
  }
  template <class Value>
  Value number(std::string_view what) {
    Value value{};
    const auto bytes = take(sizeof value, what);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string string(std::string_view what) {
    const auto bytes = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void read_magic() {
    const auto magic = take(4, "its first four bytes");
    if (!error_ && std::memcmp(magic.data(), "GGUF", 4) != 0)
      return fail("this is no GGUF file", 0, Error::Code::kBadInput,
                  "pass a .gguf file, or the folder that holds safetensors");
    const auto version = number<std::uint32_t>("its version");
    if (error_ || version == 2 || version == 3) return;
    const bool swapped = (version & 0xffffU) == 0 && version != 0;
    fail(swapped ? "the file is of the big-endian kind"
                 : fmt::format("the file is of GGUF version {}", version),
         4, Error::Code::kUnsupported, "the lab reads versions 2 and 3, little-endian");
  }

  GgufValue scalar(std::uint32_t type) {
    switch (type) {
      case kU8:
        return std::int64_t{number<std::uint8_t>("a value")};
      case kI8:
        return std::int64_t{number<std::int8_t>("a value")};
      case kU16:
        return std::int64_t{number<std::uint16_t>("a value")};
      case kI16:
        return std::int64_t{number<std::int16_t>("a value")};
      case kU32:
        return std::int64_t{number<std::uint32_t>("a value")};
      case kI32:
        return std::int64_t{number<std::int32_t>("a value")};
      case kU64:  // beyond 2^63 it reads as below zero, which no size is
      case kI64:
        return number<std::int64_t>("a value");
      case kF32:
        return static_cast<double>(number<float>("a value"));
      case kF64:
        return number<double>("a value");
      case kBool:
        return number<std::uint8_t>("a value") != 0;
      default:
        return string("a text");
    }
  }

  GgufValue list() {
    const std::size_t at = at_;
    const auto type = number<std::uint32_t>("the type of a list");
    const auto count = number<std::uint64_t>("the length of a list");
    if (error_) return GgufList{};
    if (type > kF64 || type == kArray) {
      fail(fmt::format("a list holds values of type {}, which there is not", type), at);
    } else if (type == kString) {
      for (std::uint64_t i = 0; i < count && !error_; ++i)
        take(number<std::uint64_t>("a list of texts"), "a list of texts");
    } else if (count > bytes_.size() / kValueBytes[type]) {
      fail(fmt::format("a list of {} values is longer than the file", count), at);
    } else {
      take(count * kValueBytes[type], "a list");
    }
    return GgufList{count};
  }

  void read_key() {
    const std::size_t at = at_;
    std::string key = string("a key");
    const auto type = number<std::uint32_t>("the type of a value");
    if (!error_ && type > kF64)
      fail(fmt::format("key \"{}\" has a value of type {}, which there is not", key, type), at);
    if (error_) return;
    GgufValue value = type == kArray ? list() : scalar(type);
    const auto [place, fresh] = file_.keys_.emplace(std::move(key), std::move(value));
    if (!fresh) fail(fmt::format("key \"{}\" is there twice", place->first), at);
  }

  std::uint64_t read_alignment() {
    const auto found = file_.keys_.find("general.alignment");
    if (found == file_.keys_.end()) return kUsualAlignment;
    const auto* const value = std::get_if<std::int64_t>(&found->second);
    const std::uint64_t alignment = value == nullptr ? 0 : static_cast<std::uint64_t>(*value);
    if (alignment > kMostAlignment || !std::has_single_bit(alignment))
      fail("\"general.alignment\" is no power of two up to 2^20", at_);
    return alignment;
  }

  // Its offset stays in `bytes` until it is known where the data begin.
  void read_tensor() {
    const std::size_t at = at_;
    std::string name = string("a tensor's name");
    const auto dims = number<std::uint32_t>("a tensor's extents");
    if (!error_ && (dims < 1 || dims > kMostDims))
      fail(fmt::format("tensor \"{}\" has {} extents", name, dims), at);
    Stored tensor;
    for (std::uint32_t i = 0; i < dims && !error_; ++i)
      tensor.shape.push_back(number<std::int64_t>("a tensor's extents"));
    const auto type = number<std::uint32_t>("a tensor's type");
    tensor.bytes = number<std::int64_t>("a tensor's offset");
    if (error_) return;
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(),
                    [](std::int64_t extent) { return extent < 1; }))
      return fail(fmt::format("tensor \"{}\" has an extent below 1", name), at);
    const GgmlType* const known = ggml_type(type);
    tensor.dtype = known != nullptr ? std::string(known->name) : fmt::format("type {}", type);
    tensor.where = fmt::format("{}: byte {}", file_.path_, at);
    const auto [place, fresh] = file_.tensors_.emplace(std::move(name), std::move(tensor));
    if (!fresh) fail(fmt::format("tensor \"{}\" is there twice", place->first), at);
  }

  void place_tensors(std::uint64_t alignment) {
    const std::uint64_t begins = (at_ + alignment - 1) / alignment * alignment;
    for (auto& entry : file_.tensors_) {
      if (!error_) place(entry.first, entry.second, begins, alignment);
    }
  }

  // begins: the byte of the file that offsets count from.
  void place(const std::string& name, Stored& tensor, std::uint64_t begins,
             std::uint64_t alignment) {
    const auto offset = static_cast<std::uint64_t>(tensor.bytes);
    const std::string described =
        std::exchange(tensor.where, fmt::format("{}: byte {}", file_.path_, begins + offset));
    const auto fault = [&](std::string_view what) {
      error_ = {Error::Code::kBadInput, fmt::format("tensor \"{}\" {}", name, what), described,
                "the file is damaged or was not written completely; fetch it again"};
    };
    if (offset % alignment != 0)
      return fault(fmt::format("lies at {}, no multiple of {}", offset, alignment));
    tensor.bytes = 0;
    if (const GgmlType* const type = ggml_type_named(tensor.dtype)) {
      const auto values = product_of(tensor.shape);
      if (!values || tensor.shape.back() % type->values != 0)
        return fault(
            fmt::format("of shape [{}] cannot be {}", fmt::join(tensor.shape, ", "), type->name));
      const std::int64_t blocks = *values / type->values;
      tensor.bytes = blocks > kMostExtent / type->bytes ? kMostExtent : blocks * type->bytes;
    }
    const std::uint64_t room = bytes_.size() > begins ? bytes_.size() - begins : 0;
    if (offset > room || static_cast<std::uint64_t>(tensor.bytes) > room - offset)
      return fault(fmt::format("lies at {} with {} bytes; there are {} bytes of data", offset,
                               tensor.bytes, room));
    tensor.data = bytes_.data() + begins + offset;
    ranges_.add(name, tensor);
  }

  Gguf& file_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  Ranges ranges_;
  std::optional<Error> error_;
};

Result<std::unique_ptr<Gguf>> Gguf::open(const std::string& path) {
  TRY(MappedFile mapped, MappedFile::open(path));
  std::unique_ptr<Gguf> file(new Gguf(std::move(mapped), path));
  TRY([[maybe_unused]] const Ok read, Reader(*file, file->file_.bytes()).run());
  return file;
}

}  // namespace culprit::lab
