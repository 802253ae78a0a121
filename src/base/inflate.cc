#include "base/inflate.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#if CULPRIT_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

namespace culprit {
namespace {

constexpr std::size_t kInputSize = std::size_t{256} << 10;

// The compressed side of both inflaters: a window that refills itself.
class Input {
 public:
  explicit Input(Inflater::Refill refill) : refill_(std::move(refill)), buffer_(kInputSize) {}
  // False at the end of the input or on a read error.
  bool refill() {
    if (ended_) return false;
    const std::int64_t n = refill_(buffer_.data(), buffer_.size());
    if (n <= 0) {
      ended_ = true;
      failed_ = n < 0;
      return false;
    }
    begin = buffer_.data();
    size = static_cast<std::size_t>(n);
    return true;
  }
  bool failed() const { return failed_; }
  char* begin = nullptr;
  std::size_t size = 0;

 private:
  Inflater::Refill refill_;
  ReadBuffer buffer_;
  bool ended_ = false, failed_ = false;
};

SourceFault early_end(const Input& input, const std::string& format) {
  return {"truncated",
          input.failed() ? "the file could not be read to its end" : format + " data ends early"};
}
SourceFault damaged(const std::string& what) { return {"compression-damaged", what}; }
SourceFault followed(const std::string& format) {
  return {"trailing-data", "bytes that are not " + format + " follow the " + format + " data"};
}

#if CULPRIT_HAVE_ISAL

class GzipInflater : public Inflater {
 public:
  explicit GzipInflater(Refill refill) : input_(std::move(refill)) { reset(); }

  std::size_t read(char* out, std::size_t size) override {
    state_.next_out = reinterpret_cast<std::uint8_t*>(out);
    state_.avail_out = static_cast<std::uint32_t>(size);
    while (state_.avail_out > 0 && !done_) step();
    return size - state_.avail_out;
  }
  std::optional<SourceFault> fault() const override { return fault_; }

 private:
  // A new member: its header is read first, since isal_inflate's own header parser knows no
  // optional fields.
  void reset() {
    const auto out = state_.next_out;
    const auto room = state_.avail_out;
    isal_inflate_init(&state_);
    isal_gzip_header_init(&header_);
    state_.crc_flag = ISAL_GZIP_NO_HDR_VER;
    state_.next_out = out;
    state_.avail_out = room;
    in_header_ = true;
  }
  void step() {
    if (input_.size == 0 && !input_.refill()) {
      done_ = true;
      if (in_member_) fault_ = early_end(input_, "gzip");
      return;
    }
    if (!in_member_ && !begins_member()) {
      done_ = true;
      return;
    }
    state_.next_in = reinterpret_cast<std::uint8_t*>(input_.begin);
    state_.avail_in = static_cast<std::uint32_t>(input_.size);
    in_member_ = true;
    const int rc = in_header_ ? isal_read_gzip_header(&state_, &header_) : isal_inflate(&state_);
    // At damage it hands back what it had read ahead, of the piece before as well.
    const std::size_t left = std::min<std::size_t>(state_.avail_in, input_.size);
    input_.begin += input_.size - left;
    input_.size = left;
    if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT && rc != ISAL_OUT_OVERFLOW) {
      done_ = true;
      fault_ = damaged(rc == ISAL_INCORRECT_CHECKSUM ? "the gzip checksum does not match"
                                                     : "gzip data is damaged");
    } else if (in_header_) {
      in_header_ = rc != ISAL_DECOMP_OK;
    } else if (state_.block_state == ISAL_BLOCK_FINISH) {
      in_member_ = false;
      ++members_;
      reset();
    }
  }
  // Between members: another one may follow; zero padding is legal; anything else is garbage after
  // the end.
  bool begins_member() {
    if (members_ == 0) return true;
    while (input_.size > 0 && *input_.begin == 0) ++input_.begin, --input_.size;
    if (input_.size == 0) return input_.refill() ? begins_member() : false;
    if (static_cast<unsigned char>(*input_.begin) == 0x1f) return true;
    fault_ = followed("gzip");
    return false;
  }

  Input input_;
  inflate_state state_{};
  isal_gzip_header header_{};
  bool in_header_ = true, in_member_ = false, done_ = false;
  int members_ = 0;
  std::optional<SourceFault> fault_;
};

#else

class GzipInflater : public Inflater {
 public:
  explicit GzipInflater(Refill refill) : input_(std::move(refill)) {
    inflateInit2(&stream_, 15 + 16);
  }
  ~GzipInflater() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out > 0 && !done_) step();
    return size - stream_.avail_out;
  }
  std::optional<SourceFault> fault() const override { return fault_; }

 private:
  void step() {
    if (input_.size == 0 && !input_.refill()) {
      done_ = true;
      if (in_member_) fault_ = early_end(input_, "gzip");
      return;
    }
    if (!in_member_ && members_ > 0 && static_cast<unsigned char>(*input_.begin) != 0x1f) {
      if (*input_.begin == 0) {
        ++input_.begin, --input_.size;
        return;
      }
      done_ = true;
      fault_ = followed("gzip");
      return;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(input_.begin);
    stream_.avail_in = static_cast<uInt>(input_.size);
    in_member_ = true;
    const int rc = ::inflate(&stream_, Z_NO_FLUSH);
    input_.begin += input_.size - stream_.avail_in;
    input_.size = stream_.avail_in;
    if (rc == Z_STREAM_END) {
      in_member_ = false;
      ++members_;
      inflateReset(&stream_);
    } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
      done_ = true;
      const std::string_view why = stream_.msg == nullptr ? "" : stream_.msg;
      fault_ = damaged(why == "incorrect data check" ? "the gzip checksum does not match"
                                                     : "gzip data is damaged");
    }
  }

  Input input_;
  z_stream stream_{};
  bool in_member_ = false, done_ = false;
  int members_ = 0;
  std::optional<SourceFault> fault_;
};

#endif

class ZstdInflater : public Inflater {
 public:
  explicit ZstdInflater(Refill refill) : input_(std::move(refill)), stream_(ZSTD_createDStream()) {
    // Windows above 128 MiB are refused by the library's default; `zstd --long=31` writes up to 2
    // GiB.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 31);
  }
  ~ZstdInflater() override { ZSTD_freeDStream(stream_); }
  ZstdInflater(const ZstdInflater&) = delete;
  ZstdInflater& operator=(const ZstdInflater&) = delete;

  std::size_t read(char* out, std::size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos < size && !done_) {
      if (input_.size == 0 && !input_.refill()) {
        done_ = true;
        if (in_frame_) fault_ = early_end(input_, "zstd");
        break;
      }
      ZSTD_inBuffer input{input_.begin, input_.size, 0};
      const std::size_t rc = ZSTD_decompressStream(stream_, &output, &input);
      input_.begin += input.pos;
      input_.size -= input.pos;
      if (ZSTD_isError(rc)) {
        done_ = true;
        fault_ = fault_of(rc);
        break;
      }
      started_ = true;
      in_frame_ = rc != 0;
    }
    return output.pos;
  }
  std::optional<SourceFault> fault() const override { return fault_; }

 private:
  SourceFault fault_of(std::size_t rc) const {
    if (started_ && !in_frame_) return followed("zstd");
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
      return {"limit", "the zstd data ask for a window above 2 GiB"};
    return damaged(std::string("zstd data is damaged (") + ZSTD_getErrorName(rc) + ")");
  }

  Input input_;
  ZSTD_DStream* stream_;
  bool started_ = false, in_frame_ = false, done_ = false;
  std::optional<SourceFault> fault_;
};

}  // namespace

std::unique_ptr<Inflater> make_inflater(Compression compression, Inflater::Refill refill) {
  if (compression == Compression::kZstd) return std::make_unique<ZstdInflater>(std::move(refill));
  return std::make_unique<GzipInflater>(std::move(refill));
}

}  // namespace culprit
