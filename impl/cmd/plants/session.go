package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kvfence/impl/plants"
)

// session is one run of the command.
type session struct {
	o      options
	out    io.Writer
	lab    *plants.Lab
	record plants.Record
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *session) run(ctx context.Context) error {
	var err error
	if s.record, err = plants.ReadRecord(s.o.record); err != nil {
		return err
	}
	began := time.Now()
	if s.lab, err = plants.Open(ctx, s.o.root, filepath.Join(s.o.root, buildFolder), plants.All()); err != nil {
		return err
	}
	s.say("built in %.1f s", time.Since(began).Seconds())
	if s.o.pinned {
		return s.pinned(ctx)
	}
	return s.search(ctx)
}

// pinned replays what is recorded. A plant that is not recorded, or not as it is now, is an error.
func (s *session) pinned(ctx context.Context) error {
	bad := []error{s.record.Fits(s.lab.All), s.record.Caught(s.lab.All), s.fresh()}
	n, err := s.lab.Pinned(ctx, s.record, s.o.jobs, s.say)
	err = errors.Join(append(bad, err)...)
	if err == nil && n == 0 {
		err = errors.New("none is recorded")
	}
	return s.close(err)
}

// fresh refuses a page that is not the record's.
func (s *session) fresh() error {
	page, err := os.ReadFile(s.o.page)
	if err == nil && string(page) != plants.Page(s.lab.All, s.record) {
		err = fmt.Errorf("%w: %s is not what the record says (-write)", plants.ErrRecord, s.o.page)
	}
	return err
}

// search tries the plants anew.
func (s *session) search(ctx context.Context) error {
	found, err := s.lab.SearchAll(ctx, plants.SearchOptions{Workers: s.o.jobs, Seconds: s.o.seconds, Only: s.o.only, Muted: s.o.muted, Tests: s.o.tests}, s.record, s.say)
	if err != nil {
		return err
	}
	if s.o.write {
		if err := found.Write(s.o.record); err != nil {
			return err
		}
		if err := os.WriteFile(s.o.page, []byte(plants.Page(s.lab.All, found)), 0o644); err != nil {
			return err
		}
	}
	s.record = found
	return s.close(found.Caught(s.lab.All))
}

// close prints the figures and what is wrong.
func (s *session) close(err error) error {
	if err != nil {
		s.say("%v", err)
	}
	s.say("%s", plants.Closing(s.lab.All, s.record))
	if err != nil {
		return errFailed
	}
	return nil
}
