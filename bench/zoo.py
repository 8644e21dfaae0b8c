"""The small models of testdata/models by name. Which rows are planned follows from the names, and so pages are rendered
alike where the models are not.
"""

PYCODER = "testdata/models/pycoder-5m"
ZOO = ("llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-rope-llama3", "llama-sharded-fp16",
       "llama-biases-yarn", "llama-attention-bias", "llama-mlp-bias", "llama-rope-linear", "llama-rope-dynamic",
       "llama-rope-proportional", "llama-rope-yarn", "qwen3-qknorm", "qwen3-odd-dims", "qwen3-window-half",
       "qwen3-tied", "qwen3-attention-bias", "qwen3-rope-yarn", "qwen2-bias", "qwen2-odd-dims", "qwen2-window-half",
       "qwen2-tied", "mistral-full", "mistral-head-dim", "mistral-nemo", "mistral-window", "mistral-window-narrow",
       "mistral-wide-group", "ministral-windows", "gemma-tied", "gemma-odd-dims", "gemma2-tied", "gemma2-split-k",
       "gemma2-uncapped", "gemma3-tied", "gemma3-odd-dims", "gemma3-images", "phi3-short", "phi3-long", "phi3-partial",
       "phi3-window", "apertus-biases", "apertus-gelu", "apertus-llama3", "arcee-biases", "arcee-plain",
       "cohere-biases", "cohere-head-norms", "cohere-head-norms-odd", "cohere-tied", "cohere2-head-dim",
       "cohere2-listed", "cohere2-tied",
       "cwm-listed", "cwm-windows", "ernie4-5-biases", "ernie4-5-tied", "exaone4-full", "exaone4-windows",
       "falcon-groups", "falcon-groups-one-norm", "falcon-multi-query", "falcon-sequential", "glm-half",
       "glm-three-quarters", "glm4-half", "glm4-plain", "gpt-neox-parallel", "gpt-neox-sequential", "gpt2",
       "gpt2-odd-dims", "granite-biases", "granite-scaled", "helium-biases", "helium-plain", "hunyuan-alpha",
       "hunyuan-biases", "hyperclovax-bare", "hyperclovax-post", "internlm3-biases", "internlm3-plain", "iquestcoder",
       "ministral3-window", "ministral3-yarn", "mistral3-ministral", "mistral3-small", "nemotron-biases",
       "nemotron-half", "olmo-biases", "olmo-clipped", "olmo-plain", "olmo2-biases", "olmo2-plain", "olmo3-former",
       "olmo3-windows", "opt-plain", "opt-tied", "phi-half", "phi-head-norms", "phi-odd-dims", "seed-oss-biases",
       "seed-oss-odd-dims", "smollm3-listed", "smollm3-tied", "smollm3-windows", "stablelm-head-norms",
       "stablelm-layernorm", "stablelm-odd-dims", "stablelm-parallel", "starcoder2-plain", "starcoder2-tied",
       "aya-vision", "cohere2-vision", "idefics3", "internvl", "llava", "llava-next", "llava-onevision", "qwen2-5-vl",
       "qwen2-vl", "qwen3-vl", "smolvlm")
ONLY_FP32 = ("cohere2-head-dim", "llama-rope-linear", "phi3-partial")  # tensor cores do not take heads of such sizes
