/* Calls the functions of amk.h as they must not be called, and asks for a refusal each time; and
 * as they may be called that is easily forgotten. Prints what was not as it should be. */
#include "amk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int wrong = 0;

/* A call that has to be refused, with a message. */
#define REFUSED(call)                                                               \
  do {                                                                              \
    char *error = NULL;                                                             \
    int status = call;                                                              \
    if (status != AMK_INPUT || !error || !*error || strchr(error, '\n')) {          \
      wrong = 1;                                                                    \
      printf("line %d: status %d, %s\n", __LINE__, status, error ? error : "NULL"); \
    }                                                                               \
    amk_free(error);                                                                \
  } while (0)

#define HOLDS(claim)                                    \
  do {                                                  \
    if (!(claim)) {                                     \
      wrong = 1;                                        \
      printf("line %d: %s is not so\n", __LINE__, #claim); \
    }                                                   \
  } while (0)

static int refuses(void *data, size_t done, size_t total) {
  *(int *)data += done == 0 && total == 39; /* all but the last position */
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  amk_model *model = NULL, *none = NULL;
  amk_text *text = NULL;
  amk_facts facts;
  amk_options options;
  amk_token token;
  int32_t prompt[] = {327, 285, 751}, *ids = NULL;
  size_t count = 0, bytes = 0;
  char *out = NULL;
  float logits[3], row[2 * 256], state[256];
  const int32_t mixed[] = {327, AMK_EMBEDDING};
  amk_prompt given = {NULL, 0, NULL, 0};
  int32_t many[40];
  const amk_prompt long_one = {many, 40, NULL, 0};
  int watched = 0;

  HOLDS(amk_api_version() == AMK_API_VERSION);
  REFUSED(amk_open(NULL, 0, &model, &error));
  REFUSED(amk_open(argv[1], 0, NULL, &error));
  REFUSED(amk_open(argv[1], 7, &model, &error));
  REFUSED(amk_open("", 0, &model, &error));
  REFUSED(amk_describe(NULL, &facts, &error));
  REFUSED(amk_describe((amk_model *)&facts, &facts, &error));
  HOLDS(amk_describe(NULL, &facts, NULL) == AMK_INPUT);
  HOLDS(model == NULL);
  amk_close(NULL);
  amk_end(NULL);
  amk_free(NULL);
  REFUSED(amk_default_options(NULL, sizeof options, &error));
  REFUSED(amk_default_options(&options, sizeof options - 8, &error));

  HOLDS(amk_open(argv[1], 0, &model, NULL) == AMK_OK);
  REFUSED(amk_describe(model, NULL, &error));
  HOLDS(amk_describe(model, &facts, NULL) == AMK_OK && facts.vocab == 4096);
  REFUSED(amk_encode(model, NULL, 3, 0, &ids, &count, &error));
  REFUSED(amk_encode(model, "\xff", 1, 0, &ids, &count, &error));
  REFUSED(amk_encode(model, "x", 1, 6, &ids, &count, &error));
  REFUSED(amk_encode(model, "x", 1, 0, NULL, &count, &error));
  REFUSED(amk_encode(model, "x", (size_t)-1, 0, &ids, &count, &error));
  HOLDS(amk_encode(model, NULL, 0, 0, &ids, &count, NULL) == AMK_OK && count == 0 && ids);
  amk_free(ids);
  REFUSED(amk_decode(model, NULL, 3, 0, &out, &bytes, &error));
  REFUSED(amk_decode(model, prompt, (size_t)-1, 0, &out, &bytes, &error));
  HOLDS(amk_decode(model, NULL, 0, 0, &out, &bytes, NULL) == AMK_OK && bytes == 0 && !*out);
  amk_free(out);
  REFUSED(amk_chat(model, "[", 1, &ids, &count, &error));
  REFUSED(amk_logits(model, prompt, 3, 1, logits, 3, &error));
  REFUSED(amk_logits(model, prompt, 3, (size_t)-1, logits, 3, &error));
  REFUSED(amk_logits(model, prompt, 3, 0, logits, 3, &error));
  REFUSED(amk_logits(model, prompt, 3, 1, NULL, 4096, &error));

  HOLDS(amk_hidden_size(model, &count, NULL) == AMK_OK && count == 256);
  REFUSED(amk_hidden_size(model, NULL, &error));
  memset(row, 0, sizeof row);
  given.count = 2;
  given.num_embeddings = 1;
  REFUSED(amk_outputs(model, NULL, 1, NULL, 0, state, 256, &error));
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error)); /* no ids and no rows */
  given.ids = mixed;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error));
  given.embeddings = row;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, NULL, 0, &error));
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, NULL, 256, &error));
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 255, &error));
  REFUSED(amk_outputs(model, &given, 2, NULL, 0, state, 256, &error));
  REFUSED(amk_outputs(model, &given, 0, NULL, 0, state, 256, &error));
  REFUSED(amk_outputs(model, &given, (size_t)-1, NULL, 0, state, 256, &error));
  HOLDS(amk_outputs(model, &given, 1, NULL, 0, state, 256, NULL) == AMK_OK && state[0] == state[0]);
  row[255] = NAN;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error));
  row[255] = 0;
  given.num_embeddings = 2;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error));
  given.num_embeddings = (size_t)-1;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error));
  given.num_embeddings = 0;
  REFUSED(amk_outputs(model, &given, 1, NULL, 0, state, 256, &error));
  REFUSED(amk_logits(model, mixed, 2, 1, logits, 3, &error));
  REFUSED(amk_save_prefix(model, mixed, 2, "prefix", &error));
  REFUSED(amk_watch(NULL, NULL, NULL, &error));
  HOLDS(amk_watch(model, refuses, &watched, NULL) == AMK_OK);
  for (int i = 0; i < 40; i++) many[i] = 300 + i;
  REFUSED(amk_outputs(model, &long_one, 1, NULL, 0, state, 256, &error)); /* who watches ends it */
  HOLDS(watched == 1);
  HOLDS(amk_outputs(model, &long_one, 1, NULL, 0, state, 256, NULL) == AMK_INPUT && watched == 2);
  HOLDS(amk_watch(model, NULL, NULL, NULL) == AMK_OK);
  HOLDS(amk_outputs(model, &long_one, 1, NULL, 0, state, 256, NULL) == AMK_OK && watched == 2);

  memset(&options, 0, sizeof options);
  REFUSED(amk_begin(model, prompt, 3, &options, &text, &error)); /* amk_default_options was not called */
  REFUSED(amk_sampling(model, &options, &error));
  HOLDS(amk_default_options(&options, sizeof options, NULL) == AMK_OK);
  REFUSED(amk_begin_prompt(model, NULL, &options, &text, &error));
  REFUSED(amk_begin_prompt(model, &given, &options, &text, &error));
  REFUSED(amk_begin(model, mixed, 2, &options, &text, &error));
  REFUSED(amk_begin(model, prompt, 0, &options, &text, &error));
  REFUSED(amk_begin(model, prompt, 3, NULL, &text, &error));
  REFUSED(amk_begin(model, prompt, 3, &options, NULL, &error));
  options.num_stops = 1;
  REFUSED(amk_begin(model, prompt, 3, &options, &text, &error));
  options.num_stops = 0;
  options.num_biases = 1;
  REFUSED(amk_begin(model, prompt, 3, &options, &text, &error));
  options.num_biases = 0;
  options.top_p = NAN;
  REFUSED(amk_begin(model, prompt, 3, &options, &text, &error));
  options.top_p = 1;
  options.max_tokens = 2;
  HOLDS(amk_begin(model, prompt, 3, &options, &text, NULL) == AMK_OK);
  REFUSED(amk_next(text, NULL, 0, NULL, &error));
  REFUSED(amk_next(text, prompt, 0, &token, &error)); /* no token is allowed */
  HOLDS(amk_next(text, prompt, 1, &token, NULL) == AMK_OK && token.id == 327);
  HOLDS(token.finish == AMK_MORE && token.bytes == strlen(token.text));
  HOLDS(amk_next(text, NULL, 0, &token, NULL) == AMK_OK && token.finish == AMK_LENGTH);
  REFUSED(amk_next(text, NULL, 0, &token, &error)); /* it has ended */

  amk_close(model);
  REFUSED(amk_next(text, NULL, 0, &token, &error));
  REFUSED(amk_describe(model, &facts, &error));
  amk_close(model);
  amk_end(text);
  REFUSED(amk_next(text, NULL, 0, &token, &error));
  HOLDS(none == NULL);
  return wrong;
}
