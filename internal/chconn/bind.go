package chconn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bind puts the arguments into the text as literals, in place of its placeholders: every "?" outside quotes.
//
// The driver could do this, but takes a text for one with server-side parameters as soon as "{...:...}" stands anywhere in
// it, a table's name included, and it finds mistakes only after it has opened a connection.
func bind(text string, args []any) (string, error) {
	if len(args) == 0 {
		return text, nil // like the driver: a text without arguments has no placeholders
	}
	var (
		out  strings.Builder
		next int
	)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'', '"', '`':
			end := endOfQuoted(text, i)
			out.WriteString(text[i:end])
			i = end - 1
		case '?':
			if next == len(args) {
				return "", fmt.Errorf("the text has more placeholders than the %d arguments", len(args))
			}
			value, err := literal(args[next])
			if err != nil {
				return "", fmt.Errorf("argument %d: %w", next+1, err)
			}
			out.WriteString(value)
			next++
		default:
			out.WriteByte(text[i])
		}
	}
	if next < len(args) {
		return "", fmt.Errorf("the text has %d placeholders for %d arguments", next, len(args))
	}
	return out.String(), nil
}

// endOfQuoted returns where the quoted part ends that begins at start. A quote inside is escaped with a backslash, or doubled;
// a doubled one may as well be read as two quoted parts.
func endOfQuoted(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[start]:
			return i + 1
		}
	}
	return len(text)
}

// quoter escapes what has a meaning inside a quoted literal; every other byte stands for itself.
var quoter = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`)

// literal writes a value as ClickHouse reads it.
func literal(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return "'" + quoter.Replace(v) + "'", nil
	case *string:
		if v == nil {
			return "NULL", nil
		}
		return literal(*v)
	case nil:
		return "NULL", nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return "fromUnixTimestamp64Micro(" + strconv.FormatInt(v.UnixMicro(), 10) + ", 'UTC')", nil
	case []string:
		if len(v) == 0 {
			return "", errors.New("an empty list")
		}
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = "'" + quoter.Replace(item) + "'"
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case []uint64:
		if len(v) == 0 {
			return "", errors.New("an empty list")
		}
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = strconv.FormatUint(item, 10)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case int:
		return integer(int64(v)), nil
	case int32:
		return integer(int64(v)), nil
	case int64:
		return integer(v), nil
	case uint8:
		return strconv.FormatUint(uint64(v), 10), nil
	case uint32:
		return strconv.FormatUint(uint64(v), 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	default:
		return "", fmt.Errorf("a %T cannot be bound", value)
	}
}

// integer wraps a negative number in parentheses: "- ?" must not become the "--" of a comment.
func integer(v int64) string {
	if v < 0 {
		return "(" + strconv.FormatInt(v, 10) + ")"
	}
	return strconv.FormatInt(v, 10)
}
