package costcheck
import ("testing";"fmt")
func TestZZ(t *testing.T){ fmt.Print(promptTable(t)) }
