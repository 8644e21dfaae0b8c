#include "json.h"

#include <cstdio>
#include <cstring>

namespace machine {

namespace {

struct Parser {
  const char* at;
  std::string why;
  int depth = 0;

  void skip() {
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
  }
  bool fail(const char* expected) {
    if (why.empty()) why = std::string(expected) + " is expected at: " + std::string(at, strnlen(at, 20));
    return false;
  }
  bool take(const char* word) {
    skip();
    const size_t n = strlen(word);
    if (strncmp(at, word, n) != 0) return false;
    at += n;
    return true;
  }

  bool string(std::string& text) {
    if (!take("\"")) return fail("a string");
    while (*at && *at != '"') {
      if (*at == '\\') {
        ++at;
        if (*at != '"' && *at != '\\' && *at != '/') return fail("a quote or a backslash");
      }
      text += *at++;
    }
    return *at++ == '"' || fail("the end of a string");
  }
  bool number(uint64_t& n) {
    if (*at < '0' || *at > '9') return fail("a whole number");
    while (*at >= '0' && *at <= '9') n = n * 10 + uint64_t(*at++ - '0');
    return true;
  }
  bool value(Json& v) {
    if (++depth > 50) return fail("less depth");
    const bool ok = any(v);
    --depth;
    return ok;
  }
  bool any(Json& v) {
    skip();
    if (take("null")) return true;
    const bool yes = take("true");
    if (yes || take("false")) {
      v.type = Json::Type::kBool;
      v.truth = yes;
      return true;
    }
    if (*at == '"') {
      v.type = Json::Type::kString;
      return string(v.text);
    }
    if (take("[")) {
      v.type = Json::Type::kArray;
      if (take("]")) return true;
      do {
        v.items.emplace_back();
        if (!value(v.items.back())) return false;
      } while (take(","));
      return take("]") || fail("]");
    }
    if (take("{")) {
      v.type = Json::Type::kObject;
      if (take("}")) return true;
      do {
        std::string key;
        if (!string(key)) return false;
        if (!take(":")) return fail(":");
        if (!value(v.fields[key])) return false;
      } while (take(","));
      return take("}") || fail("}");
    }
    v.type = Json::Type::kNumber;
    return number(v.number);
  }
};

}  // namespace

bool parse(const char* text, Json& value, std::string& why) {
  Parser p{text, {}};
  bool ok = p.value(value);
  p.skip();
  if (ok && *p.at) ok = p.fail("the end");
  why = p.why;
  return ok;
}

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') s += '\\', s += char(c);
    else if (c >= 0x20 && c < 0x7f) s += char(c);
    else {
      char hex[8];
      snprintf(hex, sizeof hex, "\\u%04x", c);
      s += hex;
    }
  }
  return s + "\"";
}

}  // namespace machine
