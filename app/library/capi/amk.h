/* amk.h: a compiled model in a C or C++ program. It goes with libamk.so, which every build of amkc
 * has in library/, and which opens any build of the same amkc. docs/library.md is the manual.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     amk_model *model;
 *     char *error = NULL;
 *     if (amk_open("build", 0, &model, &error) != AMK_OK) { puts(error); amk_free(error); }
 *
 * Results. A function returns AMK_OK, or another amk_status. Then, if `error` is not NULL, it puts
 * a message there, one line of UTF-8, which the caller frees with amk_free; what other pointers
 * lead to is as it was. A message says what is wrong and what would be accepted.
 *
 * Memory. What a function says it allocates is freed with amk_free. Handles are freed by amk_close
 * and amk_end, and are not to be used from then on. Arguments are read during the call only.
 *
 * Threads. All functions may be called from any thread. Calls of one model run one at a time, the
 * others wait; amk_free, amk_api_version, amk_encode, amk_decode and amk_chat never wait.
 * One text (amk_text) is for one thread at a time. A process that has loaded the library must not
 * fork and go on in the child, other than by exec: there every function fails with AMK_MACHINE, as
 * neither Go nor the CUDA driver runs in such a child. amk_free still works.
 *
 * Ids of tokens go from 0 to vocab-1. Text is UTF-8, with its length in bytes.
 */
#ifndef AMK_H
#define AMK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Functions are added at a higher one, and nothing that is there
 * changes: a program that was compiled with version N runs with libraries from N on. Version 3 is
 * the exception: amk_options begins with its size, and amk_default_options has replaced amk_greedy,
 * so that programs of versions 1 and 2 do not link with it. */
#define AMK_API_VERSION 4

/* The version of the library, to be compared with AMK_API_VERSION: want at least that. */
int amk_api_version(void);

typedef enum amk_status {
  AMK_OK = 0,
  AMK_INPUT = 1,    /* an argument, a file or the build is at fault; the same call fails again */
  AMK_MACHINE = 2,  /* the driver, the GPU, its memory or the file system is at fault */
  AMK_INTERNAL = 3, /* a bug of the library */
} amk_status;

typedef struct amk_model amk_model; /* a build on a GPU */
typedef struct amk_text amk_text;   /* a prompt that is continued token by token */

/* Frees what a function has allocated. NULL is nothing to free. */
void amk_free(void *allocated);

/* Opens the build in a directory on GPU number `gpu`, from 0: loads the weights, which takes
 * seconds, and sets *model. */
int amk_open(const char *dir, int gpu, amk_model **model, char **error);

/* Frees the GPU. Texts of the model that are still open fail from now on, and are to be ended all
 * the same. NULL is nothing to close. */
void amk_close(amk_model *model);

typedef struct amk_facts {
  int32_t vocab;   /* tokens that the model has */
  int32_t max_seq; /* positions of a text: a prompt of P ids may be followed by max_seq-P+1 */
} amk_facts;

/* Sets *facts. */
int amk_describe(amk_model *model, amk_facts *facts, char **error);

/* Flags of amk_encode and amk_decode. */
#define AMK_SPECIAL 1 /* encode: as a prompt, with its begin token. decode: special tokens too */

/* Allocates the ids of a text of `bytes` bytes: sets *ids and their number *count. */
int amk_encode(amk_model *model, const char *text, size_t bytes, int flags, int32_t **ids,
               size_t *count, char **error);

/* Allocates the text of ids: sets *text, with a 0 behind it, and *bytes without that. Bytes that
 * are no UTF-8 become U+FFFD. */
int amk_decode(amk_model *model, const int32_t *ids, size_t count, int flags, char **text,
               size_t *bytes, char **error);

/* Allocates the prompt that the chat template of the model makes of a conversation in JSON: a list
 * of messages, [{"role": "user", "content": "Hello"}], or an object with "messages" and perhaps
 * "tools", "documents", "add_generation_prompt" and "chat_template_kwargs". */
int amk_chat(amk_model *model, const char *json, size_t bytes, int32_t **ids, size_t *count,
             char **error);

/* Computes the logits after each of the last `rows` of `count` ids, float32 [rows][vocab], into
 * `logits`, which has room for `room` floats; that has to be rows * vocab at least. Ids that were
 * decoded before, by whatever call of the model, are not decoded again. */
int amk_logits(amk_model *model, const int32_t *ids, size_t count, size_t rows, float *logits,
               size_t room, char **error);

/* Since version 2: embeddings in the place of tokens, and the last hidden state. */

/* Sets *hidden to the number of elements that an embedding has, and a hidden state. */
int amk_hidden_size(amk_model *model, size_t *hidden, char **error);

#define AMK_EMBEDDING (-1) /* an id of a prompt: the next row of its embeddings */

/* What a text begins with. A row of the embeddings enters the model as it is, in the place of the
 * row that the embedding table has for a token: already times what the model multiplies those with,
 * and before the row of its position is added where the model has learned one for each. */
typedef struct amk_prompt {
  const int32_t *ids; /* tokens, and AMK_EMBEDDING */
  size_t count;
  const float *embeddings; /* [num_embeddings][hidden], finite numbers, in the order of the ids */
  size_t num_embeddings;   /* as many as there are AMK_EMBEDDING among the ids */
} amk_prompt;

/* Computes of each of the last `rows` positions of a prompt the logits, float32 [rows][vocab], and
 * the last hidden state, float32 [rows][hidden]: after the last norm, as the logits are made of it.
 * Either may be NULL, with room for 0 floats, and is not computed then. What was decoded before, by
 * whatever call of the model, is not decoded again, up to the first of these positions. */
int amk_outputs(amk_model *model, const amk_prompt *prompt, size_t rows, float *logits,
                size_t logits_room, float *hidden, size_t hidden_room, char **error);

/* How a prompt is continued. docs/sampling.md says what each number does, to the bit. */
typedef struct amk_options {
  size_t size;               /* sizeof(amk_options); amk_default_options sets it */
  int32_t max_tokens;        /* at most so many; 0: as many as there are positions for */
  int32_t ignore_eos;        /* not 0: go on after a token that ends the text */
  int32_t top_k;             /* 0: all */
  int32_t logprobs;          /* not 0: compute log-probabilities of tokens */
  double temperature;        /* 0: the most probable token is chosen, and nothing is drawn */
  double top_p;              /* 0 to 1; 1: all */
  double min_p;              /* 0 to 1; 0: all */
  double repetition_penalty; /* 1: none */
  double presence_penalty;   /* 0: none */
  double frequency_penalty;  /* 0: none */
  uint64_t seed;             /* of what is drawn: the same seed, the same text */
  const char *const *stops;  /* strings at which the text ends, each with a 0 behind it */
  size_t num_stops;
  const int32_t *bias_ids; /* tokens to whose logits is added ... */
  const double *biases;    /* ... a number each; -INFINITY: never chosen */
  size_t num_biases;
  const char *schema; /* a JSON schema that the text has to follow, with a 0 behind it, or "" for any
                         object in JSON; NULL: any text. docs/schemas.md says which are kept */
} amk_options;

/* Sets all options to those that choose the most probable token, with no limit but the positions.
 * `size` is sizeof(amk_options). Functions refuse options that were not set so, and those of a later
 * header. Later versions may add fields at the end, and take this size too. */
int amk_default_options(amk_options *options, size_t size, char **error);

/* Sets temperature, top_k, top_p, min_p and repetition_penalty as generation_config.json of the
 * model says, and nothing else: call amk_default_options first. */
int amk_sampling(amk_model *model, amk_options *options, char **error);

/* Begins to continue a prompt, and sets *text. Nothing is decoded yet. Several texts of a model may
 * be open; one that goes on after another is decoded again from where the two part. */
int amk_begin(amk_model *model, const int32_t *prompt, size_t count, const amk_options *options,
              amk_text **text, char **error);

/* The same of a prompt that may have embeddings. Since version 2. */
int amk_begin_prompt(amk_model *model, const amk_prompt *prompt, const amk_options *options,
                     amk_text **text, char **error);

typedef enum amk_finish {
  AMK_MORE = 0,   /* the text goes on */
  AMK_STOP = 1,   /* the model has ended it, or a stop string was found */
  AMK_LENGTH = 2, /* it has max_tokens tokens, or no position is left */
} amk_finish;

typedef struct amk_token {
  int32_t id;
  int32_t finish;   /* an amk_finish */
  const char *text; /* what this token completes: whole characters, perhaps none, a 0 behind them */
  size_t bytes;     /* of text; valid until the next call with the same amk_text */
  double logprob;   /* natural logarithm of its probability; 0 without options.logprobs */
} amk_token;

/* Chooses the next token of a text and sets *token: among the `count` ids in `allowed`, or among
 * all if that is NULL. It fails with AMK_INPUT if that leaves no token, and can be called again;
 * also once the text has ended. */
int amk_next(amk_text *text, const int32_t *allowed, size_t count, amk_token *token, char **error);

/* Ends a text, at any time. NULL is nothing to end. */
void amk_end(amk_text *text);

/* Since version 4: how far a long prompt is. */

/* Is told how many of `total` tokens have been decoded, from 0 on, in the thread of the call that
 * decodes them. That call fails with AMK_INPUT if it returns 0; what has been decoded is not decoded
 * again. It must not call the model, nor leave by longjmp or an exception. */
typedef int (*amk_watcher)(void *data, size_t done, size_t total);

/* Has `watcher` told, with `data`, while prompts are decoded that take more than a launch or two,
 * until another is set; NULL: nobody is told. It is no longer called when amk_watch has returned. */
int amk_watch(amk_model *model, amk_watcher watcher, void *data, char **error);

/* Writes a prompt, with what decoding it leaves in the cache, to a file. amk_load_prefix reads it
 * for the same build, and allocates its ids: texts and logits that begin with them are computed
 * from there on, to the same bits. */
int amk_save_prefix(amk_model *model, const int32_t *ids, size_t count, const char *path,
                    char **error);
int amk_load_prefix(amk_model *model, const char *path, int32_t **ids, size_t *count, char **error);

#ifdef __cplusplus
}
#endif

#endif
