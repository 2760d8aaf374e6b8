// Package dump reads the state graphs that TLC writes with -dump dot,actionlabels: the file as it comes, a state's label, and values as
// TLC prints them. It knows no specification. proofs/edges, proofs/coq and impl/cmd/model call it.
package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrDump is what is said of a dump that is not what TLC's -dump dot,actionlabels writes.
var ErrDump = errors.New("bad dump of TLC")

// longestLine is room for a state's text; only the lists of a level's states are longer, and they are skipped.
const longestLine = 1 << 20

// Receiver receives what a dump holds, in its order. Bytes stay until the call returns. A state may come after steps that name it.
type Receiver struct {
	State func(fp int64, label []byte, initial bool) error
	Step  func(from int64, action []byte, to int64) error
}

// Read reads a whole dump as it comes. It refuses a line that it does not know and a dump that ends early.
func Read(r io.Reader, d Receiver) error {
	in := bufio.NewReaderSize(r, longestLine)
	opened, n := 0, 0
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			if n == 0 || opened > 0 {
				return fmt.Errorf("%w: it ends at line %d inside of the graph", ErrDump, n)
			}
			return nil
		}
		n++
		if err == nil {
			opened, err = d.line(bytes.TrimRight(line, " \r\n"), n, opened)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// readLine gives the next line, of a list of a level's states its beginning only.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return line, nil // TLC ends the last line with nothing
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	if !bytes.HasPrefix(line, []byte("{rank = same;")) {
		return line, fmt.Errorf("%w: it is longer than %d bytes", ErrDump, longestLine)
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
	}
	return []byte("{rank = same;}"), err
}

// line reads line n; opened says how many braces are open before it, and after it as the result.
func (d Receiver) line(line []byte, n, opened int) (int, error) {
	switch text := string(line); {
	case n == 1 && text == "strict digraph DiskGraph {":
		return 1, nil
	case opened == 0:
		return 0, fmt.Errorf("%w: %.60q is outside of the graph", ErrDump, line)
	case text == "nodesep=0.35;" || text == `color="white";`:
		return opened, nil
	case text == "subgraph cluster_graph {":
		return opened + 1, nil
	case text == "}":
		return opened - 1, nil
	case bytes.HasPrefix(line, []byte("{rank = same;")) && bytes.HasSuffix(line, []byte("}")):
		return opened, nil
	}
	fp, rest, err := number(line)
	if err != nil {
		return opened, err
	}
	if text, ok := bytes.CutPrefix(rest, []byte(` [label="`)); ok {
		label, end, found := cutLast(text, '"')
		if e := string(end); !found || e != "];" && e != ",style = filled]" {
			return opened, fmt.Errorf("%w: a state ends with %.60q", ErrDump, end)
		}
		return opened, d.State(fp, label, string(end) != "];")
	}
	rest, ok := bytes.CutPrefix(rest, []byte(" -> "))
	if !ok {
		return opened, fmt.Errorf("%w: %.60q is neither a state nor a step", ErrDump, line)
	}
	to, rest, err := number(rest)
	if err != nil {
		return opened, err
	}
	rest, ok = bytes.CutPrefix(rest, []byte(` [label="`))
	action, end, found := bytes.Cut(rest, []byte{'"'})
	if !ok || !found || len(action) == 0 || string(end) != `,color="black",fontcolor="black"];` {
		return opened, fmt.Errorf("%w: %.60q is no step", ErrDump, line)
	}
	return opened, d.Step(fp, action, to)
}

// number reads a fingerprint.
func number(text []byte) (int64, []byte, error) {
	i := 0
	for i < len(text) && (text[i] == '-' || '0' <= text[i] && text[i] <= '9') {
		i++
	}
	n, err := strconv.ParseInt(string(text[:i]), 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %.60q has no fingerprint", ErrDump, text)
	}
	return n, text[i:], nil
}

func cutLast(text []byte, c byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, c)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+1:], true
}
