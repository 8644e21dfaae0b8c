/* Continues a prompt, token by token:
 *
 *     cc -std=c99 -Wall -Wextra -o example library/example.c library/libamk.so -Wl,-rpath,'$ORIGIN/library'
 *     ./example . "def fibonacci(n):"
 *
 * in the directory of a build. libamk.so is the same for all builds of one amkc. */
#include "amk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *error; /* of the last call */

/* Ends the program if a call went wrong. */
static void check(int status) {
  if (status == AMK_OK) return;
  fprintf(stderr, "%s\n", error);
  amk_free(error);
  exit(status == AMK_INPUT ? 1 : 2);
}

int main(int argc, char **argv) {
  if (argc != 3 || amk_api_version() < AMK_API_VERSION) {
    fprintf(stderr, "usage: %s BUILD PROMPT, with the libamk.so of a build\n", argv[0]);
    return 2;
  }
  amk_model *model;
  check(amk_open(argv[1], 0, &model, &error));

  int32_t *prompt;
  size_t count;
  check(amk_encode(model, argv[2], strlen(argv[2]), AMK_SPECIAL, &prompt, &count, &error));

  amk_options options;
  check(amk_default_options(&options, sizeof options, &error));
  options.max_tokens = 32;
  amk_text *text;
  check(amk_begin(model, prompt, count, &options, &text, &error));
  amk_free(prompt);

  amk_token token;
  do {
    check(amk_next(text, NULL, 0, &token, &error));
    fwrite(token.text, 1, token.bytes, stdout);
    fflush(stdout);
  } while (token.finish == AMK_MORE);
  puts("");

  amk_end(text);
  amk_close(model);
  return 0;
}
