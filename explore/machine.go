package explore

import (
	"encoding/json"
	"fmt"

	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// control are the functions of the machine that are none of CUDA (explore/cpu/machine/control.h).
type control struct {
	Device      func(major, minor, sms uint32) `cu:"amk_explore_device"`
	Schedule    func(json string)              `cu:"amk_explore_schedule"`
	Result      func() string                  `cu:"amk_explore_result"`
	Assumptions func() string                  `cu:"amk_explore_assumptions"`
}

// An Assumption is what the argument for a kernel takes for granted about hardware beyond what PTX promises.
type Assumption struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Default bool   `json:"default"`
}

// startMachine makes the machine the driver of this process, with a GPU that a build is for.
func startMachine(library string, target host.Target) (*control, error) {
	c := &control{}
	if err := driver.Use(library, c); err != nil {
		return nil, err
	}
	var arch uint32
	if _, err := fmt.Sscanf(target.Arch, "sm_%d", &arch); err != nil {
		return nil, fmt.Errorf("the architecture %q of the build is none", target.Arch)
	}
	c.Device(arch/10, arch%10, uint32(target.SMs))
	return c, nil
}

// result reads what the machine says of a run.
func (c *control) result() (*Run, error) {
	var r Run
	if err := json.Unmarshal([]byte(c.Result()), &r); err != nil {
		return nil, fmt.Errorf("what the machine says of a run cannot be read: %w", err)
	}
	return &r, nil
}

// assumptions are those that the machine knows.
func (c *control) assumptions() ([]Assumption, error) {
	var all []Assumption
	if err := json.Unmarshal([]byte(c.Assumptions()), &all); err != nil {
		return nil, fmt.Errorf("what the machine assumes cannot be read: %w", err)
	}
	return all, nil
}
