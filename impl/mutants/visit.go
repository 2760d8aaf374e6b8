package mutants

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// visit books what one node offers. Outer nodes come first.
func (f *file) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		kind := Guard
		if f.asserts(n.Body) {
			kind = Assertion
		}
		f.condition(kind, n.Cond, ends(n.Body.List))
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.cases(n)
		}
	case *ast.ReturnStmt:
		if len(n.Results) == 1 && tests(n.Results[0]) {
			f.always(Guard, n.Results[0])
		}
	case *ast.BinaryExpr:
		f.operands(n, Operand)
	}
	return true
}

// condition drops a whole condition where that is more than dropping one of its parts: a refusal never refuses, a condition of
// an update always holds.
func (f *file) condition(kind Kind, e ast.Expr, refuses bool) {
	op := logical(e)
	switch {
	case refuses && op != token.LOR:
		f.never(kind, e)
	case !refuses && op != token.LAND:
		f.always(kind, e)
	}
	if op != 0 && kind == Assertion {
		b, ok := unparen(e).(*ast.BinaryExpr)
		if ok {
			f.operands(b, kind)
		}
	}
}

// cases drops the cases of a switch without a tag: the next one that holds is taken.
func (f *file) cases(n *ast.SwitchStmt) {
	for _, s := range n.Body.List {
		c, ok := s.(*ast.CaseClause)
		if !ok {
			continue
		}
		kind := Guard
		if f.asserts(c) {
			kind = Assertion
		}
		for _, e := range c.List {
			f.condition(kind, e, true)
		}
	}
}

// operands drops each part of a && or || once: true in the first, false in the second.
func (f *file) operands(n *ast.BinaryExpr, kind Kind) {
	if n.Op != token.LAND && n.Op != token.LOR || f.chain[n] {
		return
	}
	var flat func(e ast.Expr)
	flat = func(e ast.Expr) {
		b, ok := unparen(e).(*ast.BinaryExpr)
		if ok && b.Op == n.Op {
			f.chain[b] = true
			flat(b.X)
			flat(b.Y)
			return
		}
		if n.Op == token.LAND {
			f.always(kind, e)
		} else {
			f.never(kind, e)
		}
	}
	flat(n)
}

// tests reports whether an expression is a comparison or a negation, so that a function that returns it is a guard.
func tests(e ast.Expr) bool {
	switch e := unparen(e).(type) {
	case *ast.BinaryExpr:
		return slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}, e.Op)
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}

// ends reports whether a list of statements leaves the way that it is on.
func ends(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// callee is the last name of what a statement calls, or "".
func callee(s ast.Stmt) string {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return ""
	}
	c, ok := e.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// asserts reports whether a block says that an invariant is broken.
func (f *file) asserts(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok && callee(s) == "broken" {
			found = true
		}
		return !found
	})
	return found
}

// statements books the updates of a block. What only records (the trace, the count of refusals) and what reports a broken
// invariant changes no state that a machine reads.
func (f *file) statements(list []ast.Stmt) {
	for _, s := range list {
		if l, ok := s.(*ast.LabeledStmt); ok {
			s = l.Stmt
		}
		switch s := s.(type) {
		case *ast.AssignStmt:
			f.assignment(s)
		case *ast.IncDecStmt:
			if state(s.X) {
				f.skip(s)
			}
		case *ast.ExprStmt:
			if name := callee(s); name != "" && !slices.Contains([]string{"did", "count", "broken"}, name) {
				f.skip(s)
			}
		}
	}
}

// state reports whether an assignment to e can outlive the function: a field, an element, what a pointer points to.
func state(e ast.Expr) bool {
	switch unparen(e).(type) {
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// skip makes a statement that a mutant leaves out.
func (f *file) skip(s ast.Stmt) {
	kind := Update
	if callee(s) == "touch" {
		kind = Assertion
	}
	f.wrap(s, fmt.Sprintf("if !mutant(%d) { ", f.site(kind, s, f.text(s))), " }")
}

// assignment drops an assignment; of several at once each by itself.
func (f *file) assignment(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE || !slices.ContainsFunc(s.Lhs, state) {
		return
	}
	if len(s.Lhs) == 1 {
		f.skip(s)
		return
	}
	whole := string(f.src[f.offset(s.Pos()):f.offset(s.End())])
	open := "switch { "
	for i, l := range s.Lhs {
		if !state(l) {
			continue
		}
		text := f.text(l) + " ="
		if len(s.Rhs) == len(s.Lhs) {
			text += " " + f.text(s.Rhs[i])
		}
		to := string(f.src[f.offset(l.Pos()):f.offset(l.End())])
		open += fmt.Sprintf("case mutant(%d): mutantOld := %s; %s; %s = mutantOld; ", f.site(Update, s, text), to, whole, to)
	}
	f.wrap(s, open+"default: ", " }")
}
