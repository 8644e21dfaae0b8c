package compiler

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/text/chat"
)

// Messages formats messages in JSON with the chat template of a model or a build, and returns the prompt. name is the
// name of the messages in errors, which are diagnostics.
func Messages(dir, name string, data []byte, now time.Time) (string, error) {
	format, err := ChatFormat(dir)
	if err != nil {
		return "", err
	}
	conversation, err := chat.Parse(data)
	if err != nil {
		return "", diag.Errorf(codeMessages, name, "%s", infile.Reason(err))
	}
	prompt, err := format.Render(conversation, chat.Options{Now: now})
	if err != nil {
		return "", diag.Errorf(codeTemplate, dir, "the chat template does not format the messages: %s",
			infile.Reason(err))
	}
	return prompt, nil
}

// ChatFormat reads the chat templates of a model or a build. The error is a diagnostic, also where there are none.
func ChatFormat(dir string) (*chat.Format, error) {
	format, err := ConversationFormat(dir)
	if format == nil && err == nil {
		return nil, diag.Errorf(codeChat, dir, "%s", noTemplate(dir)).With(
			"amkc run --prompt decodes after a text as it is")
	}
	return format, err
}

// ConversationFormat reads the chat templates of a model or a build. It returns nil where there are none: such a model
// continues text. The error is a diagnostic.
func ConversationFormat(dir string) (*chat.Format, error) {
	format, err := chat.Load(dir)
	var bad *chat.FileError
	switch {
	case err == nil:
		return format, nil
	case errors.Is(err, chat.ErrNone):
		return nil, nil
	case errors.As(err, &bad):
		return nil, diag.Errorf(codeTemplate, bad.Path, "%s", strings.TrimPrefix(bad.Error(), bad.Path+": "))
	}
	return nil, diag.Errorf(codeTemplate, dir, "%s", infile.Reason(err))
}

// noTemplate says what a model without a chat template lacks.
func noTemplate(dir string) string {
	if !isThere(filepath.Join(dir, chat.ConfigFile)) {
		return "there is no " + chat.ConfigFile + ", which says how text is formatted for the model, and no " +
			chat.TemplateFile
	}
	return "there is no chat template: " + chat.ConfigFile + " has no chat_template, and there is no " +
		chat.TemplateFile
}

// checkChat warns where a build will not format messages.
func checkChat(dir string) diag.List {
	_, warnings := LoadChat(dir)
	return warnings
}

// LoadChat returns the chat templates of a model or a build, or nil if there are none, and warnings about messages that
// they cannot format.
func LoadChat(dir string) (format *chat.Format, warnings diag.List) {
	const effect = "; prompts are decoded as they are given, so a program that holds a conversation with the model " +
		"has to know the format of its messages"
	format, err := ChatFormat(dir)
	if err != nil {
		d := asWarning(err)
		d.Msg, d.Related = d.Msg+effect, nil
		return nil, diag.List{d}
	}
	for _, name := range format.Names() {
		if err := format.Check(name); err != nil {
			warnings.Add(diag.Warningf(codeTemplate, dir, "the chat template %q: %s%s", name,
				infile.Reason(err), effect))
		}
	}
	return format, warnings
}
