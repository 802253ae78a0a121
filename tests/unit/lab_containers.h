// Containers written byte by byte, right or wrong, without the code under test; and folders that go
// away with the test.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/culprit-test-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }

 private:
  std::string path_;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Value>
std::string raw(Value value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// safetensors: tensors one behind the other, with what the header says of them.
struct SafetensorsFile {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;

  SafetensorsFile& add(const std::string& name, const std::string& dtype,
                       const std::vector<std::int64_t>& shape, const std::string& bytes) {
    header[name] = {{"dtype", dtype},
                    {"shape", shape},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
    return *this;
  }
  // pad: the header's length becomes a multiple of 8, as everybody writes it.
  std::string bytes(bool pad = true) const {
    std::string text = header.dump();
    while (pad && text.size() % 8 != 0) text += ' ';
    return raw(std::uint64_t{text.size()}) + text + data;
  }
};

// GGUF: keys and tensors as given; offsets follow from the data unless stated.
struct GgufFile {
  std::uint32_t version = 3;
  std::string keys, infos, data;
  std::uint64_t key_count = 0, tensor_count = 0;
  std::size_t alignment = 32;

  static std::string text(std::string_view value) {
    return raw(std::uint64_t{value.size()}) + std::string(value);
  }
  GgufFile& key(std::string_view name, std::uint32_t type, const std::string& value) {
    keys += text(name) + raw(type) + value;
    ++key_count;
    return *this;
  }
  GgufFile& number(std::string_view name, std::uint32_t value) { return key(name, 4, raw(value)); }
  GgufFile& real(std::string_view name, float value) { return key(name, 6, raw(value)); }
  GgufFile& word(std::string_view name, std::string_view value) {
    return key(name, 8, text(value));
  }

  // dims: fastest first, as the file has them.
  GgufFile& info(std::string_view name, const std::vector<std::int64_t>& dims, std::uint32_t type,
                 std::uint64_t offset) {
    infos += text(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::int64_t dim : dims) infos += raw(dim);
    infos += raw(type) + raw(offset);
    ++tensor_count;
    return *this;
  }
  GgufFile& add(std::string_view name, const std::vector<std::int64_t>& dims, std::uint32_t type,
                const std::string& bytes) {
    info(name, dims, type, data.size());
    data += bytes;
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  std::string bytes() const {
    std::string head = "GGUF" + raw(version) + raw(tensor_count) + raw(key_count) + keys + infos;
    head.resize((head.size() + alignment - 1) / alignment * alignment);
    return head + data;
  }
};

}  // namespace culprit::test
