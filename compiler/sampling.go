package compiler

import (
	"errors"
	"strings"

	"amkc/ir/diag"
	"amkc/text/sampling"
)

// Sampling returns the sampling options that flags select for a model or a build. Errors are *sampling.UsageError and
// diagnostics.
func Sampling(dir string, f *sampling.Flags) (sampling.Options, error) {
	o, err := f.Options(dir)
	return o, samplingError(err)
}

// checkSampling warns where a build will not follow the generation_config.json of its model.
func checkSampling(dir string) *diag.Diagnostic {
	_, err := sampling.ReadConfig(dir)
	if err == nil {
		return nil
	}
	d := asWarning(samplingError(err))
	d.Msg += "; --sample will be refused, and --temperature and the other flags work without it"
	return d
}

func samplingError(err error) error {
	var config *sampling.ConfigError
	if errors.As(err, &config) {
		return diag.Errorf(codeGeneration, config.Path, "%s", strings.TrimPrefix(config.Error(), config.Path+": "))
	}
	return err
}
