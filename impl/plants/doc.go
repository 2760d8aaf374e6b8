// Package plants plants the public faults in the engine, one at a time, and asks who notices. A plant is a small change of the source:
// a condition that never holds, a statement that is left out, another in its place. It is found by the text that stands there, so that
// a plant whose place has changed is refused and never rots. All plants go into one build (impl/overlay, tag "plants"), each behind a
// switch that the environment turns on; the sources have no switch. Seeded runs of impl/sim and the packages' own tests are the gates; the
// record keeps, for each plant, the seed that catches it and the property by which it is caught.
//
// It plants nothing that no public report or guard of the protocol stands behind: single guards and updates, all of them, are
// impl/mutants'. impl/cmd/plants calls it. Read next: plant.go (what a plant is), list_*.go (the plants), mix.go (what runs), record.go.
package plants
