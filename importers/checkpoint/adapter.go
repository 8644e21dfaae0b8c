package checkpoint

import "amkc/ir/diag"

const adapterConfig = "adapter_config.json"

// adapterWeights are the files that PEFT stores the weights of an adapter in.
var adapterWeights = []string{"adapter_model.safetensors", "adapter_model.bin"}

// refuseAdapter refuses a directory with an adapter's configuration: transformers applies the adapter to whatever
// model lies next to it, so without it the model is another one. It returns nil where there is none.
func refuseAdapter(dir string) *diag.Diagnostic {
	if !isThere(dir, adapterConfig) {
		return nil
	}
	what := "an adapter alone, without the model that it belongs to"
	if isThere(dir, "config.json") {
		what = "an adapter next to the model, which transformers would apply to it"
	}
	return diag.Errorf(codeAdapter, dir, "%s says that this is %s; merge the adapter into its model first "+
		"(PEFT's merge_and_unload), save the result and give that directory", adapterConfig, what).
		With("a model that is meant without the adapter: move the adapter's files out of its directory")
}

// onlyAdapter says of a directory without the weights of a model that it holds those of an adapter, or returns nil.
func onlyAdapter(dir string) *diag.Diagnostic {
	for _, name := range adapterWeights {
		if isThere(dir, name) {
			return diag.Errorf(codeAdapter, dir,
				"%s is an adapter, and the model that it belongs to is not here; merge the adapter into "+
					"its model first (PEFT's merge_and_unload), save the result and give that directory", name)
		}
	}
	return nil
}
