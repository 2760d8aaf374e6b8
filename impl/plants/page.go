package plants

import "fmt"

// Closing is the line of figures.
func Closing(all []Plant, r Record) string {
	plants, caught, slowest, by := 0, 0, 0.0, ""
	for i := range all {
		p := &all[i]
		if p.Aid() {
			continue
		}
		plants++
		e := r[p.Name]
		if e.Run != nil && matches(p.Want, e.Run.Property) || p.Tests && len(e.Tests) > 0 {
			caught++
		}
		if e.Run != nil && e.Run.Seconds > slowest {
			slowest, by = e.Run.Seconds, p.Name
		}
	}
	return fmt.Sprintf("%d planted bugs, %d caught by name, the slowest (%s) in %.1f s", plants, caught, by, slowest)
}

// Page is docs/plants.md.
func Page(all []Plant, r Record) string { return "" }
