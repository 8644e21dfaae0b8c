// The fake CUDA driver of runtime/driver with the kernels of a build in it, for tests of the host packages. An image is
// text: "FAKE" and then key=value pairs, see `settings`. The decode kernel chooses tokens that depend on every row of the
// cache before it, and complains when a launch breaks the rules that the real one relies on: the epoch is the number of
// steps since the exchange pages were cleared, all steps and those since then are of one variant, no row is missing.
// An image with "REFERENCE" holds the plain kernels instead, which agree with it to the bit.
// Build: cc -shared -fPIC -ffp-contract=off -o libcuda.so.1 fakekernels.c -lm
#include <math.h>

#define cuModuleLoadDataEx base_cuModuleLoadDataEx
#define cuModuleGetFunction base_cuModuleGetFunction
#define cuModuleGetGlobal_v2 base_cuModuleGetGlobal_v2
#define cuLaunchKernel base_cuLaunchKernel
#define cuLaunchCooperativeKernel base_cuLaunchCooperativeKernel
#include "../../../driver/testdata/fakecuda.c"
#undef cuModuleLoadDataEx
#undef cuModuleGetFunction
#undef cuModuleGetGlobal_v2
#undef cuLaunchKernel
#undef cuLaunchCooperativeKernel

#include "fakeimages.h"
#include "fakesteps.h"
#include "fakemeasures.h"
#include "fakereference.h"

// What a test that includes this file has happen before each launch of a kernel of the build.
#ifndef BEFORE_LAUNCH
#define BEFORE_LAUNCH(args)
#endif

CUresult cuLaunchCooperativeKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, Stream* s, void** args) {
  BEFORE_LAUNCH(args);
  CUresult r = base_cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, s, args);
  if (r) return r;
  int over_prompt = f == &prompt_kernel;
  if (gx != info.sms || bx != (over_prompt ? prompt.threads : info.threads)) return 1;
  if (shared != (over_prompt ? prompt.shared : info.shared) || f->dynamic < (int)shared) return 1;
  Launch* l = calloc(1, sizeof *l);
  memcpy(l, args[0], f->sizes[0]);
  if (gpus > 1) {
    for (int i = 0; i < 8; i++)
      if ((l->peers[i] != 0) != (i < gpus)) complain("other pages than those of all GPUs");
    if (l->rank < 0 || l->rank >= gpus || l->peers[l->rank] != l->exchange) complain("a rank with the pages of another");
    else if (!l->rank && !l->first_epoch && ((Exchange*)host(l->peers[1]))->steps)
      complain("GPU 0 is launched before the pages of GPU 1 are clear");
    if (l->rank && l->host_tokens) complain("two GPUs tell the host tokens");
  }
  static void (*const runs_of[])(void*) = {decode, ceiling, decode, profile, drain};
  if (*(uint32_t*)host(l->abort_device)) complain("the abort word of the launch before is still set");
  if (over_prompt) return queue(s, (Op){.kind = kKernel, .dst = l, .run = read_prompt});
  size_t of_pass = f - pass_kernels[0];
  if (f >= pass_kernels[0] && of_pass < 2 * 11)
    return queue(s, (Op){.kind = kKernel, .dst = l, .run = of_pass % 2                ? ceiling
                                                              : of_pass / 2 == kMixed ? decode_mixed
                                                              : of_pass / 2 == kBatch ? decode_batch
                                                                                      : decode_passes[of_pass / 2]});
  int kernel = f - build_kernels;
  if ((kernel == kTrace || kernel == kProfile) != (l->trace != 0)) return 1;
  return queue(s, (Op){.kind = kKernel, .dst = l, .run = runs_of[kernel]});
}

CUresult cuLaunchKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, Stream* s, void** args, void** extra) {
  CUresult r = base_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, args, extra);
  if (!r && f == &build_kernels[kRead]) {
    if (gx != 2 * info.sms || bx != 512 || shared) return 1;
    Read* read = malloc(sizeof *read);
    memcpy(read, args[0], sizeof *read);
    return queue(s, (Op){.kind = kKernel, .dst = read, .run = run_read});
  }
  if (!r && f == &matrices_kernel) {
    if (gx != 1 || bx != 1 || shared) return 1;
    Launch* l = malloc(sizeof *l);
    memcpy(l, args[0], 208);
    return queue(s, (Op){.kind = kKernel, .dst = l, .run = list_matrices});
  }
  if (!r && f == &part_kernel) {
    if (gx != info.sms || bx != info.threads || shared != info.shared || f->dynamic < (int)shared) return 1;
    PartLaunch* part = malloc(sizeof *part);
    memcpy(part, args[0], sizeof *part);
    return queue(s, (Op){.kind = kKernel, .dst = part, .run = run_part});
  }
  int kernel = f - (build_kernels + kFirstReference);
  if (r || kernel < 0 || kernel >= kBuildKernels - kFirstReference) return r;
  if (gx != reference_step[kernel].blocks || bx != reference.threads || shared) return 1;
  ReferenceArg* arg = malloc(sizeof *arg);
  memcpy(arg, args[0], 40);
  arg->kernel = kernel;
  return queue(s, (Op){.kind = kKernel, .dst = arg, .run = run_reference});
}
