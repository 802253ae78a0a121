// Result<T> or Error: how every layer reports a failure. Nothing here throws, prints or exits.
// An Error is something the user can act on: what is wrong, where in *their* input, and what to do
// about it.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace culprit {

struct Error {
  enum class Code { kUsage, kCannotRead, kBadInput, kUnsupported, kUnusable, kInterrupted };
  Code code = Code::kBadInput;
  std::string what;   // "event has no \"ts\""
  std::string where;  // "trace.json: byte 1048577"; empty only for usage errors
  std::string hint;   // "re-record with ..., or pass ..."
  std::string note_code =
      {};  // the contract's note code for an input without an answer; empty: derived from `code`
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& operator*() const {
    assert(ok());
    return std::get<0>(state_);
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace culprit

#define CULPRIT_CAT_(a, b) a##b
#define CULPRIT_CAT(a, b) CULPRIT_CAT_(a, b)
#define CULPRIT_TRY_(tmp, decl, expr) \
  auto tmp = (expr);                  \
  if (!tmp.ok()) return tmp.error();  \
  decl = std::move(*tmp)
// TRY(auto trace, ingest::load(path));
#define TRY(decl, expr) CULPRIT_TRY_(CULPRIT_CAT(try_, __LINE__), decl, expr)
