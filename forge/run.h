// The description of a run: what a model's step launches, from which code, and what it costs.
// Invariant: plain data, no clock and no text of the format; recipes build it, the forge writes it.
// Units: times are nanoseconds before jitter, memory is bytes, shapes are elements, outermost first.
// Shares nothing with src/: what is planted here must be found there without help.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace culprit::forge {

using Nanos = std::int64_t;

// The driver entry a launch goes through; decides the event's name, category and callback id.
enum class Api {
  kLaunchKernel,
  kLaunchKernelExC,
  kLaunchCooperative,
  kDriverLaunchEx,  // Triton and cuBLAS: category cuda_driver
  kMemcpyAsync,
  kMemsetAsync,
  kStreamSynchronize,  // nothing runs on the device
  kEventSynchronize,   // waits for the launch that marked an event in the step before
};

// What NCCL reports of a collective; recorded on record_param_comms and copied to the kernel.
struct Collective {
  std::string name;  // "allreduce"
  std::int64_t elements_in = 0;
  std::int64_t elements_out = 0;
  std::string dtype;  // "BFloat16"
  std::string group;  // process group name
};

// One API call and the work it puts on the device.
struct Launch {
  Api api = Api::kLaunchKernel;
  std::string name;  // of the device event, in full
  std::array<int, 3> grid = {1, 1, 1};
  std::array<int, 3> block = {1, 1, 1};
  int registers = 32;      // per thread
  int shared = 0;          // bytes per block
  std::int64_t bytes = 0;  // copies and sets
  Nanos device = 0;        // time on the device
  Nanos call = 2'000;      // time in the API call when nothing holds it up
  bool blocking = false;   // the call returns only when its work is done
  bool event = false;      // marks the event of its step
  bool aside = false;      // on a second stream, behind what the first has been given so far
  bool joins = false;      // waits for all but the latest launch of the second stream
  std::optional<Collective> collective;  // starts together on all ranks
  bool by_load = false;                  // grid and time follow the requests that its rank has
};

// One input of an operator as record_shapes keeps it.
struct Value {
  std::string dtype;               // "c10::BFloat16", "Scalar", ""
  std::vector<std::int64_t> dims;  // empty for scalars
  std::string concrete;            // scalars and lists
};

// An operator; a call's operators are a tree in pre-order and its launches happen in the last one.
struct Op {
  int depth = 0;
  std::string name;
  std::vector<Value> inputs;
  bool annotation = false;  // a user annotation, with its twin on the device
};

// A Python frame. `name` is "file(def line): function"; '@' in it stands for the layer's index.
// In Block::outer an empty name is the place where the engine's step mark opens.
struct Frame {
  std::string name;
  std::string called_from;  // "file:line" of the statement that made the call
};

// One call out of the model's code: frames that lead to it, operators it runs, launches it makes.
struct Call {
  std::vector<Frame> stack;
  std::vector<Op> ops;
  std::vector<Launch> launches;
  Nanos host = 0;               // host time besides the API calls
  Nanos graph_launch = 46'000;  // API time of the graph launch it stands for, some thousand nodes
  bool pauses = false;          // where a late rank has its pause (Late::pause)
};

// Calls that repeat as one, usually a layer.
struct Block {
  int repeat = 1;
  int first_layer = 0;        // index of the first repetition, for '@'
  bool in_graph = false;      // replayed from a CUDA graph where graphs are on
  bool own_graph = false;     // each repetition is a graph of its own
  std::vector<Frame> outer;   // from the scheduler down; shared with neighbours as far as equal
  std::vector<Frame> frames;  // entered anew by every repetition
  std::vector<Call> calls;
};

// One kind of step, e.g. decode of one token.
struct Step {
  std::string kind = "DECODE";  // SGLang's word
  int batch = 1;
  int tokens = 1;  // new tokens
  std::vector<Block> blocks;
  Call replay;  // the graph launch that stands for the blocks in_graph, below their mark; without
                // launches
};

// As deviceProperties has it.
struct Device {
  std::string name;
  std::int64_t memory = 0;  // bytes
  int major = 0;
  int minor = 0;
  int sms = 0;
  int threads_per_sm = 2048;
  int shared_per_sm = 0;         // bytes
  int shared_per_block_max = 0;  // bytes, opt-in
};

// What one rank does later than the others; per mille of what they need, 1000: as they do.
struct Late {
  int rank = -1;        // none
  int kernels = 1'000;  // time of all its kernels but collectives
  int host = 1'000;     // its host's time
  int load = 1'000;     // grid and time of the launches that follow a rank's load
  Nanos pause = 0;      // host time in each call that pauses, in every step of `pause_every`
  int pause_every = 1;
};

// Files a deployment leaves beside its traces; empty text: that file does not exist.
struct Configs {
  std::string config;        // Hugging Face config.json
  std::string quantization;  // ModelOpt hf_quant_config.json
  std::string server_info;   // SGLang's /get_server_info
};

struct Run {
  std::string name;
  Device device;
  int world = 1;  // ranks of the tensor-parallel group
  std::string process = "python3";
  std::vector<Frame> root;   // frames open during the whole recording
  std::vector<Step> steps;   // the kinds
  std::vector<int> pattern;  // order of the kinds, repeated
  int default_steps = 30;
  int first_step = 20;     // number of the first recorded step
  Nanos latency = 4'300;   // from the start of a launch call to the earliest start on the device
  Nanos gap = 600;         // between two kernels that follow each other on a stream
  Nanos graph_gap = 350;   // the same inside a graph
  int device_jitter = 8;   // per mille of a kernel's time, at most
  int host_jitter = 120;   // per mille of host time, at most
  int host_scale = 1'000;  // per mille; above 1000: a slow host
  Nanos away_every = 0;    // 0: never. Another process has the device once in this time,
  Nanos away_for = 0;      // for about this long: nothing starts meanwhile
  Nanos leave = 0;         // ranks leave a collective up to this much later than the first
  Late late;
  Configs configs;
};

}  // namespace culprit::forge
