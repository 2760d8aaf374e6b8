package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
)

// pageTemplate escapes everything; the page has no script and loads nothing.
var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Title}}</title>
<style>
body{font:15px/1.4 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222;background:#fff}
h2{margin-top:2rem}table{border-collapse:collapse;width:100%}
td{border-top:1px solid #ddd;padding:.3rem .6rem .3rem 0;vertical-align:top;word-break:break-word}
td:first-child{width:40%;color:#555}.no{color:#a00}.yes{color:#070}
</style></head><body>
<h1>{{.Title}}</h1>
{{if .Reason}}<p class="no"><strong>Not ready:</strong> {{.Reason}}</p>{{else}}<p class="yes"><strong>Ready</strong></p>{{end}}
{{range .Sections}}<h2>{{.Name}}</h2>
<table>{{range .Rows}}<tr><td>{{.Path}}</td><td>{{.Value}}</td></tr>
{{end}}</table>{{if .More}}<p>More is in <a href="status">status</a>.</p>{{end}}
{{end}}
<p><a href="status">status</a> &middot; <a href="metrics">metrics</a> &middot; refreshes every 5 seconds</p>
</body></html>
`))

// maxRows bounds a section of the page; /status has everything.
const maxRows = 500

type row struct{ Path, Value string }

type section struct {
	Name string
	Rows []row
	More bool
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Title, Reason string
		Sections      []section
	}{Title: h.cfg.Title}
	if err := h.cfg.Ready(r.Context()); err != nil {
		data.Reason = err.Error()
	}
	for _, p := range h.parts(r.Context()) {
		s := section{Name: p.Name}
		var v any
		d := json.NewDecoder(bytes.NewReader(p.JSON))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			v = "not JSON"
		}
		s.flatten("", v)
		data.Sections = append(data.Sections, s)
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, data); err != nil {
		plain(w, http.StatusInternalServerError, "the page cannot be made")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = w.Write(out.Bytes()) // a client that left reads nothing
}

// flatten turns a JSON value into rows of path and value, in sorted order.
func (s *section) flatten(path string, v any) {
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	if len(s.Rows) >= maxRows {
		s.More = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			s.flatten(join(k), v[k])
		}
	case []any:
		for i, e := range v {
			s.flatten(join(fmt.Sprint(i)), e)
		}
	case nil:
		s.Rows = append(s.Rows, row{path, "-"})
	default:
		s.Rows = append(s.Rows, row{path, fmt.Sprint(v)})
	}
}
