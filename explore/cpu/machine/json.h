// Enough of JSON for what the control API takes and gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace machine {

struct Json {
  enum class Type { kNull, kBool, kNumber, kString, kArray, kObject } type = Type::kNull;
  bool truth = false;
  uint64_t number = 0;  // whole and not negative: there are no others here
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> fields;
};

// Returns false, and what is wrong, if the text is not JSON.
bool parse(const char* text, Json& value, std::string& why);
std::string quoted(const std::string& text);

}  // namespace machine
