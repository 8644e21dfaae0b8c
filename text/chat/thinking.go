package chat

import "amkc/text/jinja"

// thinking are the variables by which templates turn thinking on and off.
var thinking = []string{"enable_thinking", "thinking"}

// Thinking returns the variable that turns thinking on and off in the answer to a conversation: the one with which the
// prompt depends on its value. It is empty if the template has none. Errors are those of [Format.Render].
func (f *Format) Thinking(c *Conversation, o Options) (string, error) {
	asked := *c
	asked.AddGenerationPrompt, asked.ContinueFinalMessage = true, false
	for _, name := range thinking {
		if !f.Mentions(name) {
			continue
		}
		var prompts [2]string
		for i := range prompts {
			asked.Extra = &jinja.Dict{}
			if c.Extra != nil {
				for _, key := range c.Extra.Keys() {
					v, _ := c.Extra.Get(key)
					asked.Extra.Set(key, v)
				}
			}
			asked.Extra.Set(name, i == 1)
			text, err := f.Render(&asked, o)
			if err != nil {
				return "", err
			}
			prompts[i] = text
		}
		if prompts[0] != prompts[1] {
			return name, nil
		}
	}
	return "", nil
}
