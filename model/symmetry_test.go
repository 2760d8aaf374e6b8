package model

import "slices"

// permutations is every order of 0 to n-1, the natural one first.
func permutations(n uint8) [][]uint8 {
	if n == 0 {
		return [][]uint8{nil}
	}
	var all [][]uint8
	for _, shorter := range permutations(n - 1) {
		for at := range len(shorter) + 1 {
			all = append(all, slices.Insert(slices.Clone(shorter), len(shorter)-at, n-1))
		}
	}
	return all
}

// cell is a variable at one index.
type cell struct {
	v  Variable
	at Index
}

// canonical gives, of the states that differ by the names of pages, channels and, if wanted, ranks only, the same one for all.
func canonical(w *Settings, ranks bool) func(State) State {
	var cells []cell
	place := map[string]map[Index]int{}
	for _, v := range Variables() {
		place[v.Name] = map[Index]int{}
		w.Each(v, func(at Index) {
			place[v.Name][at] = len(cells)
			cells = append(cells, cell{v, at})
		})
	}
	rankOrders := permutations(w.ranks())
	if !ranks {
		rankOrders = rankOrders[:1]
	}
	var renamings [][]int // place of a cell's value after renaming
	for _, p := range permutations(w.pages()) {
		for _, k := range rankOrders {
			for _, c := range permutations(w.chans()) {
				orders := map[string][]uint8{"Page": p, "Rank": k, "Chan": c}
				var to []int
				for _, x := range cells {
					at := x.at
					for i, domain := range x.v.Of {
						if order, ok := orders[domain]; ok {
							at[i] = order[at[i]]
						}
					}
					to = append(to, place[x.v.Name][at])
				}
				renamings = append(renamings, to)
			}
		}
	}
	old, renamed, least := make([]uint8, len(cells)), make([]uint8, len(cells)), make([]uint8, len(cells))
	return func(s State) State {
		for i, x := range cells {
			old[i] = x.v.Get(&s, x.at)
		}
		for n, to := range renamings {
			for i, value := range old {
				renamed[to[i]] = value
			}
			if n == 0 || slices.Compare(renamed, least) < 0 {
				copy(least, renamed)
			}
		}
		for i, x := range cells {
			x.v.Set(&s, x.at, least[i])
		}
		return s
	}
}
