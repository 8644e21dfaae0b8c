package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// The files of a campaign.
const (
	campaignName = "campaign.json"
	trialsName   = "trials.jsonl"
	ResultsName  = "results.tsv"
	ReportName   = "report.html"
	lockName     = ".lock"
)

// A Journal is a campaign's directory, open for one process. Trials are appended and synced one by one: when Append
// returns, the trial is durable.
type Journal struct {
	Campaign *Campaign
	State    *State

	dir      string
	previous string // digest of the last line
	out      appender
	claim    *outfile.Claim
}

// appender is what a journal writes to: a file, but for tests.
type appender interface {
	io.WriteCloser
	Sync() error
}

// Create starts a campaign in a directory, which is created if necessary, and must not contain a campaign or files with
// the names that a campaign writes.
func Create(dir string, c *Campaign) error {
	if err := c.check(campaignName); err != nil {
		return err
	}
	path := filepath.Join(dir, campaignName)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return diag.Errorf(codeJournal, dir, "cannot be made: %s", infile.Reason(err))
	}
	claim, err := hold(dir)
	if err != nil {
		return err
	}
	defer claim.Release()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(codeJournal, path, "is there already; want another directory, or no new campaign")
	}
	for _, name := range []string{trialsName, ResultsName, ReportName} {
		path := filepath.Join(dir, name)
		// No trials are what is left where a process was killed before it wrote campaign.json.
		if f, err := os.Lstat(path); err == nil && (name != trialsName || f.Size() > 0 || !f.Mode().IsRegular()) {
			return diag.Errorf(codeJournal, path, "is there, without a %s next to it, and a new campaign would "+
				"replace it; want another directory", campaignName)
		}
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	// The trials first: a directory with a campaign.json has both.
	for _, f := range []struct {
		name string
		text []byte
	}{{trialsName, nil}, {campaignName, append(text, '\n')}} {
		err := outfile.Write(filepath.Join(dir, f.name), func(w io.Writer) error {
			_, err := w.Write(f.text)
			return err
		})
		if err != nil {
			return diag.Errorf(codeJournal, filepath.Join(dir, f.name), "cannot be written: %s", infile.Reason(err))
		}
	}
	return nil
}

func hold(dir string) (*outfile.Claim, error) {
	claim, _, err := outfile.Hold(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, outfile.ErrBusy):
		return nil, diag.Errorf(codeBusy, dir, "another process works on this campaign; wait until it has ended")
	case err != nil:
		return nil, diag.Errorf(codeJournal, dir, "cannot be held: %s", infile.Reason(err))
	}
	return claim, nil
}

// Exists reports whether a directory holds a campaign.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, campaignName))
	return err == nil
}

// holds refuses a directory without a campaign.
func holds(dir string) error {
	if Exists(dir) {
		return nil
	}
	return diag.Errorf(codeJournal, dir, "holds no campaign: there is no %s; want a directory of amkc search -o",
		campaignName)
}

// LoadCampaign reads the parameters of a campaign. digest is that of the file, which identifies the campaign.
func LoadCampaign(dir string) (c *Campaign, digest string, err error) {
	path := filepath.Join(dir, campaignName)
	if err := holds(dir); err != nil {
		return nil, "", err
	}
	text, err := infile.Read(path, campaignFile)
	if err != nil {
		return nil, "", diag.Errorf(codeJournal, path, "cannot be read: %s", infile.Reason(err))
	}
	c = &Campaign{}
	if schema := schemaOf(text); slices.Contains(earlierCampaigns, schema) {
		return nil, "", earlier(path, schema, CampaignSchema)
	}
	if err := strictJSON(text, c); err != nil {
		return nil, "", diag.Errorf(codeCampaign, path, "is not a campaign: %s", infile.InJSON(text, err))
	}
	return c, hexDigest(text), c.check(path)
}

// Load reads a campaign and folds its trials. An incomplete last line, of a process that was killed, is ignored. whole
// is the length of the complete lines.
func Load(dir string) (s *State, previous string, whole int64, err error) {
	c, digest, err := LoadCampaign(dir)
	if err != nil {
		return nil, "", 0, err
	}
	path := filepath.Join(dir, trialsName)
	lines, err := infile.Read(path, trialsFile)
	if err != nil {
		return nil, "", 0, diag.Errorf(codeJournal, path, "cannot be read: %s", infile.Reason(err))
	}
	s, previous = NewState(c), digest
	for n := 1; ; n++ {
		line, rest, complete := bytes.Cut(lines, []byte("\n"))
		if !complete {
			return s, previous, whole, nil
		}
		t, err := parseTrial(line, previous, s)
		if err != nil {
			return nil, "", 0, diag.Errorf(codeTrials, path, "line %d: %s", n, infile.Reason(err))
		}
		s.Apply(t)
		previous, lines, whole = hexDigest(line), rest, whole+int64(len(line))+1
	}
}

// parseTrial reads a line, which follows another one.
func parseTrial(line []byte, previous string, s *State) (*Trial, error) {
	var t Trial
	if err := strictJSON(line, &t); err != nil {
		return nil, infile.InJSON(line, err)
	}
	switch {
	case t.Previous != previous:
		return nil, errors.New("does not follow the line before it: a line was changed, removed or added")
	case t.N != len(s.trials):
		return nil, errors.New("has another number than its place")
	case t.Verdict == nil:
		return nil, errors.New("has no verdict")
	case len(s.trials) == 0 && t.Role != RoleStart:
		return nil, errors.New("is the first, and not of the start")
	}
	return &t, t.Verdict.check("its verdict")
}

// schemaOf is what a file says that it is, whatever else it has.
func schemaOf(text []byte) string {
	var head struct {
		Schema string `json:"schema"`
	}
	_ = json.Unmarshal(text, &head) // of what is not JSON nothing is known
	return head.Schema
}

func strictJSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
}

func hexDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// OpenJournal opens a campaign to continue it. An incomplete last line is removed.
func OpenJournal(dir string) (*Journal, error) {
	if err := holds(dir); err != nil {
		return nil, err
	}
	claim, err := hold(dir)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(dir)
	if err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	j.claim = claim
	return j, nil
}

func openJournal(dir string) (*Journal, error) {
	s, previous, whole, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if err := s.sameRules(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, trialsName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, diag.Errorf(codeJournal, path, "cannot be written to: %s", infile.Reason(err))
	}
	if err := file.Truncate(whole); err != nil {
		file.Close()
		return nil, diag.Errorf(codeJournal, path, "cannot be written to: %s", infile.Reason(err))
	}
	return &Journal{Campaign: s.campaign, State: s, dir: dir, previous: previous, out: file}, nil
}

// Append records a trial and applies it.
func (j *Journal) Append(t *Trial) error {
	t.Previous = j.previous
	t.Accepted = j.State.Accepts(t)
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = j.out.Write(append(line, '\n'))
	if err == nil {
		err = j.out.Sync()
	}
	if err != nil {
		return diag.Errorf(codeJournal, filepath.Join(j.dir, trialsName), "cannot be written to: %s",
			infile.Reason(err))
	}
	j.previous = hexDigest(line)
	j.State.Apply(t)
	return nil
}

// Close releases the lock of the campaign.
func (j *Journal) Close() error {
	err := j.out.Close()
	if j.claim != nil {
		err = errors.Join(err, j.claim.Release())
	}
	return err
}
