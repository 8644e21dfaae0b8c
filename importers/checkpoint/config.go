package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// A Document is a JSON file of the model directory.
type Document struct {
	Name    string // base name, which positions of diagnostics begin with
	Raw     []byte // the file as it is
	*Object        // its contents
}

// A Config has the files of a model directory that describe the model, except its weights.
type Config struct {
	Dir        string    // as given to Open or OpenConfig
	Model      *Document // config.json
	Generation *Document // generation_config.json, nil if there is none
	Quantised  *Document // quantize_config.json, nil if there is none
}

// QuantisedFile is the file in which former tools described the quantisation of weights, which config.json contains
// now.
const QuantisedFile = "quantize_config.json"

// OpenConfig reads config.json, and generation_config.json and quantize_config.json if they exist, from a model
// directory that need not contain weights. Errors: AMK1001 to AMK1003 for the directory, AMK1035 for an adapter in it,
// AMK1006 to AMK1009 and AMK1037 for the files. Of adapters, which change no shape, it checks what they are on their
// own.
func OpenConfig(dir string, adapters ...string) (*Config, error) {
	c, err := openConfig(dir, adapters)
	if err != nil {
		return nil, err
	}
	opened, err := openAdapters(adapters)
	if err != nil {
		return nil, err
	}
	closeAdapters(opened)
	return c, nil
}

func openConfig(dir string, adapters []string) (*Config, *diag.Diagnostic) {
	if IsGGUF(dir) {
		g, err := openGGUF(dir)
		if err != nil {
			return nil, err
		}
		defer g.close()
		return g.config()
	}
	if err := checkDirectory(dir); err != nil {
		return nil, err
	}
	if err := refuseAdapter(dir, adapters); err != nil {
		return nil, err
	}
	model, err := readDocument(dir, "config.json", infile.ModelConfig)
	if err != nil {
		return nil, err
	}
	if model == nil {
		return nil, noConfig(dir)
	}
	generation, err := readDocument(dir, "generation_config.json", infile.ModelConfig)
	if err != nil {
		return nil, err
	}
	quantised, err := readDocument(dir, QuantisedFile, infile.ModelConfig)
	if err != nil {
		return nil, err
	}
	return &Config{Dir: dir, Model: model, Generation: generation, Quantised: quantised}, nil
}

// ReadDocument reads a JSON file of a model directory. It returns nil, and no error, if there is no such file. Errors:
// AMK1006 to AMK1009 and AMK1037.
func ReadDocument(dir, name string) (*Document, error) {
	d, err := readDocument(dir, name, infile.ModelConfig)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// readDocument returns nil, and no error, when there is no such file.
func readDocument(dir, name string, kind infile.Kind) (*Document, *diag.Diagnostic) {
	raw, err := infile.Read(filepath.Join(dir, name), kind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Errorf(codeRead, name, "cannot read the file: %v", infile.Reason(err))
	}
	return parseDocument(name, raw)
}

// ParseDocument reads the text of a JSON file of a model directory. Errors: AMK1007 to AMK1009 and AMK1037.
func ParseDocument(name string, raw []byte) (*Document, error) {
	d, err := parseDocument(name, raw)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func parseDocument(name string, raw []byte) (*Document, *diag.Diagnostic) {
	if bad := refusePointer(name, raw); bad != nil {
		return nil, bad
	}
	object, bad := parseObject(name, raw)
	if bad != nil {
		return nil, bad
	}
	return &Document{Name: name, Raw: raw, Object: object}, nil
}

// checkDirectory tells apart the ways in which dir may fail to be a directory, because each needs different advice.
func checkDirectory(dir string) *diag.Diagnostic {
	info, err := os.Stat(dir)
	switch {
	case dir == "":
		return diag.Errorf(codeNoDirectory, "MODEL",
			"the path is empty; a directory with config.json and safetensors weights is needed")
	case errors.Is(err, fs.ErrNotExist):
		return diag.Errorf(codeNoDirectory, dir,
			"there is no such directory; a directory with config.json and safetensors weights is needed")
	case err != nil:
		return diag.Errorf(codeNoDirectory, dir, "cannot open the directory: %s", infile.Reason(err))
	case info.IsDir():
		return nil
	case foreignFormat(dir) != "":
		return diag.Errorf(codeForeignWeights, dir,
			"this is a file (%s); a directory with config.json and safetensors weights is needed", foreignFormat(dir))
	}
	return diag.Errorf(codeNoDirectory, dir, "this is a file; give the directory that holds it, %s", filepath.Dir(dir))
}

func noConfig(dir string) *diag.Diagnostic {
	if d := onlyAdapter(dir); d != nil {
		return d
	}
	names, err := fileNames(dir)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return diag.Errorf(codeNoConfig, dir, "the directory is empty; config.json and safetensors weights are needed")
	}
	d := diag.Errorf(codeNoConfig, dir, "there is no config.json in this directory")
	var cached []string
	for _, name := range names {
		if strings.HasPrefix(name, hubPrefix) {
			cached = append(cached, filepath.Join(dir, name))
		}
	}
	if len(cached) > 0 {
		return d.With(firstFew("model of a hub's cache:", cached)...)
	}
	for _, name := range names {
		if foreignFormat(name) != "" {
			d.With(name + " is " + foreignFormat(name) + ", which is not read: config.json and safetensors weights are")
			break
		}
	}
	return d
}

// foreignFormat names the weight format of a file that amkc does not read, or is empty.
func foreignFormat(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".bin", ".pt", ".pth", ".ckpt":
		return "pickled PyTorch weights"
	case ".gguf", ".ggml":
		return "a GGUF file"
	case ".h5", ".msgpack", ".onnx", ".npz":
		return "weights of another framework"
	}
	return ""
}

// fileNames lists what dir holds, sorted.
func fileNames(dir string) ([]string, *diag.Diagnostic) {
	entries, err := infile.List(dir)
	if err != nil {
		return nil, diag.Errorf(codeNoDirectory, dir, "cannot list the directory: %v", infile.Reason(err))
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}
