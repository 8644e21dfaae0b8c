// Steps of llama.cpp on a GGUF file, asked for line by line on stdin, one JSON object a line; bench/llama_cpp.py says what
// it asks, and builds this against llama.h. A step is llama_decode of one token with its logits, and llama_synchronize, as
// llama-bench has it. All layers are on the GPU, with flash attention.
//
//     {"do": "logits", "ids": [1, 2], "out": "FILE"}       logits after each id, fp32, from position 0 on
//     {"do": "timed", "position": 128, "steps": 16, "launches": 20, "warm_up": 2}
//                                                          microseconds per token, of so many times so many steps
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

constexpr int kContext = 512;

// The integers after "key": in a request, one or those of an array.
std::vector<int> Numbers(const std::string &request, const char *key) {
  std::vector<int> found;
  size_t at = request.find('"' + std::string(key) + "\":");
  if (at == std::string::npos) return found;
  const char *p = request.c_str() + at + std::strlen(key) + 3;
  bool array = false;
  for (;; ) {
    while (*p == ' ' || *p == '[' || *p == ',') array |= *p++ == '[';
    char *end;
    const long n = std::strtol(p, &end, 10);
    if (end == p) return found;
    found.push_back(static_cast<int>(n));
    p = end;
    if (!array) return found;
  }
}

std::string Text(const std::string &request, const char *key) {
  const std::string open = '"' + std::string(key) + "\": \"";
  const size_t at = request.find(open);
  if (at == std::string::npos) return "";
  return request.substr(at + open.size(), request.find('"', at + open.size()) - at - open.size());
}

void Fail(const char *what) {
  std::printf("{\"ok\": false, \"error\": \"%s\"}\n", what);
  std::fflush(stdout);
}

bool Step(llama_context *ctx, int token) {
  llama_token t = token;
  if (llama_decode(ctx, llama_batch_get_one(&t, 1)) != 0) return false;
  llama_synchronize(ctx);
  return true;
}

bool Logits(llama_context *ctx, const std::string &request, int vocab) {
  std::FILE *out = std::fopen(Text(request, "out").c_str(), "wb");
  if (out == nullptr) return false;
  llama_memory_clear(llama_get_memory(ctx), true);
  bool ok = true;
  for (int id : Numbers(request, "ids")) {
    ok = ok && Step(ctx, id) && std::fwrite(llama_get_logits_ith(ctx, -1), sizeof(float), vocab, out) == size_t(vocab);
  }
  return (std::fclose(out) == 0) && ok;
}

bool Timed(llama_context *ctx, const std::string &request, int vocab) {
  const auto number = [&](const char *key) {
    const auto n = Numbers(request, key);
    return n.empty() ? 0 : n[0];
  };
  const int position = number("position"), steps = number("steps"), launches = number("launches");
  if (steps < 1 || launches < 1 || position < 0 || position + steps > kContext) return false;
  llama_memory_t memory = llama_get_memory(ctx);
  llama_memory_clear(memory, true);
  for (int i = 0; i < position; i++) {
    if (!Step(ctx, (7919 * i + 1) % vocab)) return false;
  }
  std::vector<double> us;
  for (int i = -number("warm_up"); i < launches; i++) {
    if (!llama_memory_seq_rm(memory, 0, position, -1)) return false;
    const auto start = std::chrono::steady_clock::now();
    for (int s = 0; s < steps; s++) {
      if (!Step(ctx, (104729 * s + 11) % vocab)) return false;
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (i >= 0) us.push_back(took.count() / steps);
  }
  std::sort(us.begin(), us.end());
  const auto quantile = [&](double q) { return us[size_t(q * (us.size() - 1) + 0.5)]; };
  std::printf("{\"ok\": true, \"us\": {\"p10\": %.2f, \"median\": %.2f, \"p90\": %.2f}}\n", quantile(0.1), quantile(0.5),
              quantile(0.9));
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.gguf\n", argv[0]);
    return 2;
  }
  ggml_backend_load_all();
  llama_model_params of_model = llama_model_default_params();
  of_model.n_gpu_layers = 999;
  llama_model *model = llama_model_load_from_file(argv[1], of_model);
  if (model == nullptr) return 1;
  llama_context_params of_context = llama_context_default_params();
  of_context.n_ctx = kContext;
  of_context.n_batch = of_context.n_ubatch = 1;
  of_context.n_threads = of_context.n_threads_batch = 1;  // of the host, which only looks the token up
  of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  llama_context *ctx = llama_init_from_model(model, of_context);
  if (ctx == nullptr) return 1;
  const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (std::string request; std::getline(std::cin, request);) {
    const std::string what = Text(request, "do");
    if (what == "logits") {
      Logits(ctx, request, vocab) ? void(std::printf("{\"ok\": true, \"vocab\": %d}\n", vocab)) : Fail("logits");
    } else if (what != "timed") {
      Fail("no such request");
    } else if (!Timed(ctx, request, vocab)) {
      Fail("timed");
    }
    std::fflush(stdout);
  }
  llama_free(ctx);
  llama_model_free(model);
}
