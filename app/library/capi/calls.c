/* The functions of amk.h. Each calls the function of Go of the same name (export.go), but in a child
 * of fork: it has none of the threads that run Go, and a call would never return. */
#include "amk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int forked = 0; /* of a process without the threads that have loaded the library */

static void fork_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(NULL, NULL, fork_child); }

static int refuse(char **error) {
  static const char message[] =
      "this process is the child of a fork, in which the library does not run; want the process that "
      "loaded it, or a child that starts with exec (Python's multiprocessing: spawn)";
  if (error && (*error = malloc(sizeof message))) memcpy(*error, message, sizeof message);
  return AMK_MACHINE;
}

/* A function that returns a status, and one that returns nothing. */
#define STATUS(name, parameters, arguments) \
  int go_##name parameters;                 \
  int name parameters { return forked ? refuse(error) : go_##name arguments; }
#define NOTHING(name, parameters, arguments) \
  void go_##name parameters;                 \
  void name parameters {                     \
    if (!forked) go_##name arguments;        \
  }

/* For Go, which cannot call a pointer to a function. */
int amk_tell(amk_watcher watcher, void *data, size_t done, size_t total) {
  return watcher(data, done, total);
}

int amk_api_version(void) { return AMK_API_VERSION; }

void amk_free(void *allocated) { free(allocated); }

STATUS(amk_open, (const char *dir, int gpu, amk_model **model, char **error),
       (dir, gpu, model, error))
NOTHING(amk_close, (amk_model *model), (model))
STATUS(amk_describe, (amk_model *model, amk_facts *facts, char **error), (model, facts, error))
STATUS(amk_encode, (amk_model *model, const char *text, size_t bytes, int flags, int32_t **ids,
        size_t *count, char **error),
       (model, text, bytes, flags, ids, count, error))
STATUS(amk_decode, (amk_model *model, const int32_t *ids, size_t count, int flags, char **text,
        size_t *bytes, char **error),
       (model, ids, count, flags, text, bytes, error))
STATUS(amk_chat, (amk_model *model, const char *json, size_t bytes, int32_t **ids, size_t *count,
        char **error),
       (model, json, bytes, ids, count, error))
STATUS(amk_logits, (amk_model *model, const int32_t *ids, size_t count, size_t rows, float *logits,
        size_t room, char **error),
       (model, ids, count, rows, logits, room, error))
STATUS(amk_hidden_size, (amk_model *model, size_t *hidden, char **error), (model, hidden, error))
STATUS(amk_outputs, (amk_model *model, const amk_prompt *prompt, size_t rows, float *logits,
        size_t logits_room, float *hidden, size_t hidden_room, char **error),
       (model, prompt, rows, logits, logits_room, hidden, hidden_room, error))
STATUS(amk_default_options, (amk_options *options, size_t size, char **error),
       (options, size, error))
STATUS(amk_sampling, (amk_model *model, amk_options *options, char **error),
       (model, options, error))
STATUS(amk_begin, (amk_model *model, const int32_t *prompt, size_t count,
        const amk_options *options, amk_text **text, char **error),
       (model, prompt, count, options, text, error))
STATUS(amk_begin_prompt, (amk_model *model, const amk_prompt *prompt, const amk_options *options,
        amk_text **text, char **error),
       (model, prompt, options, text, error))
STATUS(amk_next, (amk_text *text, const int32_t *allowed, size_t count, amk_token *token,
        char **error),
       (text, allowed, count, token, error))
NOTHING(amk_end, (amk_text *text), (text))
STATUS(amk_watch, (amk_model *model, amk_watcher watcher, void *data, char **error),
       (model, watcher, data, error))
STATUS(amk_save_prefix, (amk_model *model, const int32_t *ids, size_t count, const char *path,
        char **error),
       (model, ids, count, path, error))
STATUS(amk_load_prefix, (amk_model *model, const char *path, int32_t **ids, size_t *count,
        char **error),
       (model, path, ids, count, error))
