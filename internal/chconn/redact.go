package chconn

import "strings"

// window is how many bytes in a row make a part of a payload: fewer are met by chance, and hold no secret.
const window = 8

// quoted is how ClickHouse shows the bytes of a string inside quotes.
var quoted = strings.NewReplacer(
	`\`, `\\`, `'`, `\'`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\x00", `\0`,
)

// redact hides every part of a message that repeats a string of the statement's tables: the server shows values that break
// a constraint, for one, or that it cannot convert. What the text says itself stays, such as the words of a throwIf.
func redact(message string, statement Statement) string {
	m := mask{message: message, starts: map[string][]int{}, hidden: make([]bool, len(message))}
	for i := 0; i+window <= len(message); i++ {
		if part := message[i : i+window]; !strings.Contains(statement.Text, part) {
			m.starts[part] = append(m.starts[part], i)
			m.begins[pair(part)] = true
		}
	}
	for _, table := range statement.External {
		for _, row := range table.Rows {
			for _, cell := range row {
				switch value := cell.(type) {
				case string:
					m.hide(value)
				case *string:
					if value != nil {
						m.hide(*value)
					}
				}
			}
		}
	}
	return m.String()
}

// A mask covers parts of a message.
type mask struct {
	message string
	starts  map[string][]int // where each window of the message begins
	begins  [1 << 16]bool    // the first two bytes of them, to pass quickly over a long payload
	hidden  []bool
}

func pair(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

// hide covers what the message shares with a value, as it is or as the server shows it.
func (m *mask) hide(value string) {
	m.cover(value)
	if shown := quoted.Replace(value); shown != value {
		m.cover(shown)
	}
}

func (m *mask) cover(value string) {
	for i := 0; i+window <= len(value); i++ {
		if !m.begins[pair(value[i:])] {
			continue
		}
		for _, start := range m.starts[value[i:i+window]] {
			for j := range window {
				m.hidden[start+j] = true
			}
		}
	}
}

// String is the message with an ellipsis for each part that is covered.
func (m *mask) String() string {
	var out strings.Builder
	for i := range len(m.message) {
		switch {
		case !m.hidden[i]:
			out.WriteByte(m.message[i])
		case i == 0 || !m.hidden[i-1]:
			out.WriteString("…")
		}
	}
	return out.String()
}
