package explain

import "strings"

// variable says how the changes of a variable are told. Keys and values are shown by their roles:
//
//	t transfer, l lease, x lease that filled a page, k rank, p page, c channel, q source page, i incarnation of a prefill rank, d of decode, g generation, e epoch
//	n tenant, a adapter, f prefix, v view, y kind of receipt, z cause, m mark, b truth value, s state
//	O lease as owner (0: free), B lease as bytes (0: nobody's), T lease in a tag (0: void)
//
// In the texts %1 to %9 are the keys, or a member's parts, %o and %n the old and the new value. Of a set, on tells a new member and
// off a lost one; of truth values, on is TRUE. Other changes are told by on. A quiet variable is told only when nothing else changed.
type variable struct {
	name  string
	place place  // where it is
	keys  string // a role for each key or part
	value string // the role of the value
	quiet bool
	on    string
	off   string
}

// transferVariables are those of Transfer.tla and of the modules that it extends, in the order in which they are told.
func transferVariables() []variable {
	return append(append(append(requestVariables(), decodeVariables()...), grantVariables()...), append(prefillVariables(), fabricVariables()...)...)
}

func requestVariables() []variable {
	return []variable{
		{"lead", decodeLeader, "t", "s", false, "%1: %o -> %n", ""},
		{"cause", decodeLeader, "t", "z", false, "the cause of %1: %o -> %n", ""},
		{"succ", decodeLeader, "t", "t", false, "%n tries again what %1 did not do", ""},
		{"root", decodeLeader, "t", "t", true, "%1 is of the request that began as %n", ""},
		{"http", client, "t", "s", false, "the client of %1 is told: %n", ""},
		{"pask", prefillLeader, "t", "b", false, "prefill has accepted %1", "prefill has not accepted %1"},
	}
}

func decodeVariables() []variable {
	return []variable{
		{"dinc", decodeRank, "", "d", false, "the decode node restarts: %o -> %n", ""},
		{"own", pages, "p", "O", false, "%1: %o -> %n", ""},
		{"gen", pages, "p", "g", false, "%1 is in %n now", ""},
		{"dst", decodeRank, "l", "s", false, "%1: %o -> %n", ""},
		{"hold", decodeRank, "lk", "b", false, "%1 is held until %2 has answered", "the hold of %1 on %2 ends"},
		{"got", decodeRank, "lk", "b", false, "the part of %2 for %1 is in", "the part of %2 for %1 is not in"},
		{"rec", decodeRank, "ylki", "", false, "decode keeps the %1 of %3 for %2", "the %1 of %3 for %2 counts"},
		{"nin", decodeRank, "lkci", "", false, "the notice of %2 for %1 on %3 is in", "the notice of %2 for %1 on %3 is forgotten"},
		{"qep", decodeRank, "lk", "e", true, "%1 was found bad in %n of link %2", ""},
		{"krn", decodeRank, "lpgx", "", false, "a kernel for %1 reads %2, filled for %4", "the kernel for %1 on %2 ends"},
		{"tok", decodeRank, "lxB", "", false, "a token of %1 leaves, made of %3 where those of %2 were expected", ""},
		{"ep", decodeRank, "k", "e", false, "link %1: %o -> %n", ""},
		{"linc", decodeRank, "k", "i", false, "link %1 speaks to %n", ""},
		{"up", decodeRank, "k", "b", false, "link %1 is open", "link %1 is closed"},
		{"fencing", decodeRank, "k", "b", false, "a fence of link %1 begins", "the fence of link %1 returns"},
		{"dmark", decodeRank, "k", "m", false, "decode's mark on link %1: %o -> %n", ""},
		{"nextL", decodeRank, "", "l", true, "the next lease is %n", ""},
		{"pubs", decodeRank, "pgl", "", false, "%1 in %2, filled for %3, is published", "%1 in %2 is published no more"},
		{"shr", decodeRank, "lpx", "", false, "%1 shares %2, filled for %3", "%1 shares %2 no more"},
		{"app", pages, "p", "b", false, "decode has written into %1", "nothing of decode's is in %1"},
	}
}

func grantVariables() []variable {
	return []variable{
		{"gpage", decodeRank, "lp", "g", true, "%1 was granted %2 in %n", ""},
		{"owes", decodeRank, "lk", "b", true, "%2 owes a part of %1", "%2 owes nothing of %1"},
		{"gep", decodeRank, "lk", "e", true, "%1 is of %n on link %2", ""},
		{"ginc", decodeRank, "lk", "i", true, "%1 is for %n of %2", ""},
		{"dof", decodeRank, "l", "d", true, "%1 is of %n", ""},
		{"tof", decodeRank, "l", "t", true, "%1 is of %n", ""},
		{"ten", decodeRank, "l", "n", false, "%1 is of %n", ""},
		{"ada", decodeRank, "l", "a", false, "%1 is for %n", ""},
		{"pre", decodeRank, "l", "f", false, "%1 has the tokens of %n", ""},
	}
}

func prefillVariables() []variable {
	return []variable{
		{"pinc", prefillRank, "k", "i", false, "%1 restarts: %o -> %n", ""},
		{"pst", prefillRank, "lk", "s", false, "%1 at %2: %o -> %n", ""},
		{"pview", prefillRank, "lk", "v", false, "%2 takes the prompt of %1 for %n", ""},
		{"pmark", prefillRank, "k", "m", false, "the mark of %1: %o -> %n", ""},
		{"pfenced", prefillRank, "kde", "", false, "%1 has fenced its own end of %3", "the fence of %1 of %3 is forgotten"},
		{"sown", prefillRank, "kq", "O", false, "%2 of %1: %o -> %n", ""},
		{"sdat", prefillRank, "kq", "B", false, "%2 of %1 has %n", ""},
		{"sst", prefillRank, "kq", "s", false, "%2 of %1: %o -> %n", ""},
		{"sent", prefillRank, "lkpci", "", true, "%2 has sent a write for %1", ""},
		{"src", prefillRank, "lkpc", "q", true, "the write of %2 for %1 into %3 comes from %n", ""},
		{"nsent", fabric, "lkci", "", false, "%2 sends the notice for %1 on %3 behind its writes", ""},
		{"ans", prefillRank, "ylki", "", false, "%3 says %1 for %2", ""},
		{"acc", prefillRank, "kide", "", false, "%1, %2, answers the connect of %4", ""},
	}
}

func fabricVariables() []variable {
	return []variable{
		{"queued", fabric, "lkpci", "", false, "the write of %2 for %1 into %3 is posted on %4", "the write of %2 for %1 into %3 is gone before its source was read"},
		{"flying", fabric, "lkpci", "", false, "the write of %2 for %1 into %3 is on its way", "the write of %2 for %1 into %3 is dropped"},
		{"placing", fabric, "lkpci", "", false, "the write of %2 for %1 into %3 has been let in; its bytes are still to be copied", "the write of %2 for %1 into %3 ends with its process"},
		{"unseen", fabric, "lkpci", "", false, "the write of %2 for %1 into %3 is being copied", "the write of %2 for %1 into %3 is over"},
		{"lost", fabric, "lkpci", "", false, "the write of %2 for %1 into %3 is reported as failed", ""},
		{"pay", fabric, "lkpc", "B", false, "it carries %n", ""},
		{"mem", pages, "pk", "B", false, "%1, slot of %2, has %n", ""},
		{"tagl", pages, "pk", "T", false, "the tag of %1, slot of %2, is %n", ""},
		{"spent", fabric, "", "b", true, "the one fault of this run has happened", ""},
	}
}

// pullVariables are those of Pull.tla.
func pullVariables() []variable {
	return []variable{
		{"own", pages, "p", "O", false, "%1: %o -> %n", ""},
		{"dpage", decodeRank, "lp", "", true, "%1 was granted %2", ""},
		{"dep", decodeRank, "l", "e", true, "%1 is of %n", ""},
		{"dst", decodeRank, "l", "s", false, "%1: %o -> %n", ""},
		{"copying", decodeRank, "lp", "", false, "a copy for %1 into %2 begins", "the bytes of the copy for %1 are in %2"},
		{"taken", decodeRank, "lp", "", true, "the copy for %1 into %2 is still to be checked", "the copy for %1 into %2 is over"},
		{"read", decodeRank, "l", "", false, "a step of %1 reads", "the step of %1 is over"},
		{"ep", decodeRank, "", "e", false, "the link: %o -> %n", ""},
		{"fencing", decodeRank, "", "b", false, "a fence begins", "the fence returns"},
		{"nextL", decodeRank, "", "l", true, "the next lease is %n", ""},
		{"mark", decodeRank, "", "m", false, "decode's mark: %o -> %n", ""},
		{"said", decodeRank, "l", "", false, "decode says Read for %1", ""},
		{"pinc", prefillRank, "", "i", false, "prefill restarts: %o -> %n", ""},
		{"pof", prefillRank, "l", "i", true, "%n works on %1", ""},
		{"pst", prefillRank, "l", "s", false, "%1 at prefill: %o -> %n", ""},
		{"spage", prefillRank, "l", "q", true, "%1 is computed in %n", ""},
		{"sown", prefillRank, "q", "O", false, "%1: %o -> %n", ""},
		{"sst", prefillRank, "q", "s", false, "%1: %o -> %n", ""},
		{"sdat", prefillRank, "q", "B", false, "%1 has %n", ""},
		{"stag", prefillRank, "q", "T", false, "the tag of %1 is %n", ""},
		{"offered", prefillRank, "l", "", false, "prefill offers %1", ""},
		{"mem", pages, "p", "B", false, "%1 has %n", ""},
		{"tagl", pages, "p", "T", false, "the tag of %1 is %n", ""},
	}
}

// noun is v in the words of its role.
func noun(role byte, v value) string {
	s := v.String()
	zero := s == "0"
	switch role {
	case 't':
		return "transfer " + s
	case 'l', 'x':
		return "lease " + s
	case 'O':
		if zero {
			return "free"
		}
		return "lease " + s
	case 'B':
		if zero {
			return "nobody's bytes"
		}
		return "the bytes of lease " + s
	case 'T':
		if zero {
			return "void"
		}
		return "that of lease " + s
	case 'p':
		return "page " + s
	case 'q':
		return "source page " + s
	case 'c':
		return "channel " + s
	case 'i', 'd':
		return "incarnation " + s
	case 'g':
		return "generation " + s
	case 'e':
		return "epoch " + s
	case 'n':
		return "tenant " + s
	case 'a':
		return "adapter " + s
	case 'f':
		return "prefix " + s
	case 'v', 'y':
		switch s {
		case "complete":
			return "Complete"
		case "misnamed":
			return "Complete for something else"
		case "ack":
			return "AbortAck"
		case "failed":
			return "Failed"
		case "gone":
			return "Gone"
		case "same":
			return "what it is"
		case "short":
			return "a shorter one"
		case "other":
			return "another one"
		}
	}
	return s
}

// tell is c in the words of its variable, or "" if these have none for it.
func (x *variable) tell(c change) string {
	text := x.on
	if c.op == '-' || c.op == '=' && x.value == "b" && c.after.String() == "FALSE" {
		text = x.off
	}
	if len(c.at) != len(x.keys) {
		return ""
	}
	for i, k := range c.at {
		text = strings.ReplaceAll(text, "%"+string(rune('1'+i)), noun(x.keys[i], k))
	}
	if x.value != "" {
		text = strings.ReplaceAll(text, "%o", noun(x.value[0], c.before))
		text = strings.ReplaceAll(text, "%n", noun(x.value[0], c.after))
	}
	return text
}

// plain is c of a variable that has no words.
func plain(c change) string {
	name := c.variable
	at := make([]string, 0, len(c.at))
	for _, v := range c.at {
		at = append(at, v.String())
	}
	switch c.op {
	case '+':
		return name + " has <<" + strings.Join(at, ", ") + ">> now"
	case '-':
		return name + " has <<" + strings.Join(at, ", ") + ">> no more"
	}
	if len(at) > 0 {
		name += "[" + strings.Join(at, ", ") + "]"
	}
	return name + ": " + c.before.String() + " -> " + c.after.String()
}
