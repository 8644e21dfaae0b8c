package jinja

import (
	"fmt"
	"strings"
)

// strftime formats the time that the caller gave, by the directives of C in its own locale.
func (in *interp) strftime(format string) string {
	t := in.now
	if t.IsZero() {
		in.fail("strftime_now: no time was given to render with")
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		pad := byte('0')
		if i++; i < len(format) && format[i] == '-' {
			pad = '-'
			i++
		}
		if i == len(format) {
			b.WriteString("%")
			break
		}
		number := func(width, n int) {
			if pad == '-' {
				width = 0
			}
			fmt.Fprintf(&b, "%0*d", width, n)
		}
		switch c := format[i]; c {
		case 'Y':
			fmt.Fprint(&b, t.Year())
		case 'y':
			number(2, t.Year()%100)
		case 'm':
			number(2, int(t.Month()))
		case 'd':
			number(2, t.Day())
		case 'e':
			if pad == '-' {
				number(0, t.Day())
			} else {
				fmt.Fprintf(&b, "%2d", t.Day())
			}
		case 'H':
			number(2, t.Hour())
		case 'I':
			number(2, (t.Hour()+11)%12+1)
		case 'M':
			number(2, t.Minute())
		case 'S':
			number(2, t.Second())
		case 'j':
			number(3, t.YearDay())
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'u':
			fmt.Fprint(&b, (int(t.Weekday())+6)%7+1)
		case 'w':
			fmt.Fprint(&b, int(t.Weekday()))
		case 'z', 'Z': // Python's clock of datetime.now has no zone
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			layout, ok := map[byte]string{'A': "Monday", 'a': "Mon", 'B': "January", 'b': "Jan", 'h': "Jan", 'p': "PM",
				'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06", 'F': "2006-01-02",
				'T': "15:04:05", 'R': "15:04"}[c]
			if !ok || pad == '-' {
				in.unsupported(fmt.Sprintf("%%%s in strftime_now", strings.TrimPrefix(string([]byte{pad, c}), "0")))
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
