package explore

import (
	"encoding/json"
	"errors"
	"fmt"

	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// control are the functions of the machine that CUDA does not have (explore/cpu/machine/control.h). What may go wrong
// returns what has.
type control struct {
	Schedule    func(json string) string `cu:"amk_explore_schedule"`
	Result      func() string            `cu:"amk_explore_result"`
	Assumptions func() string            `cu:"amk_explore_assumptions"`
}

// deviceVariable is the environment variable by which the machine learns what GPU it is.
const deviceVariable = "AMK_CPU_DEVICE"

// deviceOf is the GPU that a build is for, or those.
func deviceOf(facts *host.Facts) (string, error) {
	target, gpus := &facts.Target, facts.NumRanks()
	var arch int
	if _, err := fmt.Sscanf(target.Arch, "sm_%d", &arch); err != nil {
		return "", fmt.Errorf("the architecture %q of the build is not valid", target.Arch)
	}
	text, err := json.Marshal(map[string]int{"arch": arch, "sms": gpus * target.SMs, "gpus": gpus})
	return string(text), err
}

// An Assumption is a property of hardware that the argument for a kernel assumes and PTX does not guarantee.
type Assumption struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	On      bool   `json:"on"`
}

// begin begins a schedule.
func (c *control) begin(s *Schedule) error {
	if why := c.Schedule(s.text()); why != "" {
		return errors.New("the machine does not take the schedule: " + why)
	}
	return nil
}

// startMachine makes the machine the driver of this process.
func startMachine(library string) (*control, error) {
	c := &control{}
	return c, driver.Use(library, c)
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
