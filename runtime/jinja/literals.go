package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// digits is how long the run of digits at the start of s is, with single underscores between them.
func digits(s string, isDigit func(c byte) bool) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '_' && n > 0 && s[n-1] != '_' && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func decimal(c byte) bool { return '0' <= c && c <= '9' }

func (l *lexer) number(rest string) {
	whole := digits(rest, decimal)
	n := whole
	if n < len(rest) && rest[n] == '.' {
		if f := digits(rest[n+1:], decimal); f > 0 {
			n += 1 + f
		}
	}
	if n < len(rest) && rest[n]|0x20 == 'e' {
		sign := n + 1
		if sign < len(rest) && (rest[sign] == '+' || rest[sign] == '-') {
			sign++
		}
		if e := digits(rest[sign:], decimal); e > 0 {
			n = sign + e
		}
	}
	if afterDot := l.pos > 0 && l.src[l.pos-1] == '.'; n > whole && !afterDot {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(rest[:n], "_", ""), 64) // beyond its range it is an infinity
		l.emit(token{kind: tokNumber, value: f})
		l.advance(l.pos + n)
		return
	}
	n = whole
	if rest[0] == '0' {
		n = digits(rest, func(c byte) bool { return c == '0' })
		if len(rest) > 2 {
			hex := func(c byte) bool { return decimal(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
			for mark, isDigit := range map[byte]func(byte) bool{'x': hex,
				'o': func(c byte) bool { return '0' <= c && c < '8' },
				'b': func(c byte) bool { return c == '0' || c == '1' }} {
				if rest[1]|0x20 == mark {
					if d := digits(strings.TrimPrefix(rest[2:], "_"), isDigit); d > 0 {
						n = 2 + d + len(rest[2:]) - len(strings.TrimPrefix(rest[2:], "_"))
					}
				}
			}
		}
	}
	if n > maxDigits {
		fail(Limit, l.line, "a number of %d digits; %d are the most", n, maxDigits)
	}
	v, _ := new(big.Int).SetString(strings.ReplaceAll(rest[:n], "_", ""), 0)
	l.emit(token{kind: tokNumber, value: norm(v)})
	l.advance(l.pos + n)
}

func (l *lexer) str(rest string) {
	end := 1
	for end < len(rest) && rest[end] != rest[0] {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(rest) {
		fail(Syntax, l.line, "a string has no end; want %c", rest[0])
	}
	l.emit(token{kind: tokString, text: unescape(rest[1:end], l.line)})
	l.advance(l.pos + end + 1)
}

// unescape reads the escapes of Python's string literals.
func unescape(s string, line int) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		length := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		switch {
		case c == '\n':
		case strings.IndexByte("\\'\"", c) >= 0:
			b.WriteByte(c)
		case strings.IndexByte("abfnrtv", c) >= 0:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case '0' <= c && c < '8':
			n := 1
			for n < 3 && i+n < len(s) && '0' <= s[i+n] && s[i+n] < '8' {
				n++
			}
			v, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			b.WriteRune(rune(v))
			i += n - 1
		case length > 0:
			if i+length >= len(s) {
				fail(Syntax, line, "the escape \\%c of a string wants %d hexadecimal digits", c, length)
			}
			v, err := strconv.ParseUint(s[i+1:i+1+length], 16, 32)
			if err != nil || v > unicode.MaxRune || !utf8.ValidRune(rune(v)) {
				fail(Syntax, line, "the escape \\%s of a string is no character", s[i:i+1+length])
			}
			b.WriteRune(rune(v))
			i += length
		case c == 'N':
			unsupported(line, `a character by its name, \N{...},`)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}
