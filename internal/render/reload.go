package render

import (
	"github.com/coreos/go-systemd/v22/daemon"

	"hadrain/internal/statefile"
)

// reload reads again what was read at the start, other than the flags. What
// fails is logged and counted, and the one before stays in use.
func (l *loop) reload() {
	if l.told {
		// Before READY=1 this would end the start for systemd.
		l.cfg.Notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
		defer l.cfg.Notify(daemon.SdNotifyReady)
	}
	ok := true
	if err := l.reconnect(); err != nil {
		ok = false
		l.log.Error("reloading: the certificates before stay in use", "error", err)
	}
	ok = l.list() && ok
	if err := l.check(l.cfg.Templates); err != nil {
		ok = false
		l.log.Error("reloading: the templates before stay in use", "error", err)
	} else {
		ok = l.reread(l.cfg.Templates) && ok
	}
	l.metrics.reloaded(!ok)
	if ok {
		l.log.Info("reloaded", "templates", len(l.templates()))
	}
}

// list reads the list of templates again, and reports whether it can be used.
func (l *loop) list() bool {
	if l.cfg.List == nil {
		return true
	}
	templates, err := l.cfg.List()
	if err == nil {
		err = l.check(templates)
	}
	if err != nil {
		l.log.Error("reloading: the list of templates before stays in use", "error", err)
		return false
	}
	l.cfg.Templates = templates
	return true
}

// check returns an error if templates cannot be those of this process. It looks
// anew also at those that are in use: their links may lead elsewhere by now, such
// as to another one's source.
func (l *loop) check(templates []Template) error {
	next := l.cfg
	next.Templates = templates
	if l.out != nil {
		next.State = l.out.path // where its link led at the start
	}
	return next.Check()
}

// reread makes the appliers those of templates, reading all sources again. A
// file of which no template is listed any more stays as it is. It reports whether
// all templates can be used.
func (l *loop) reread(templates []Template) bool {
	shown, before := map[series]bool{}, map[string]*applier{}
	for _, a := range l.templates() {
		shown[series{a.listed.Source, a.listed.Destination}] = true
		before[statefile.Identity(a.path)] = a
	}
	ok := true
	var after []*applier
	for _, t := range templates {
		shown[series{t.Source, t.Destination}] = true
		path := statefile.Identity(t.Destination)
		a, err := l.renewed(before[path], t)
		if err != nil {
			ok = false
		}
		if a != nil {
			after = append(after, a)
			delete(before, path)
		}
	}
	l.appliers.Store(&after)
	for _, a := range before {
		l.log.Info("a template is listed no more, its file stays", "template", a.listed.Source, "destination", a.listed.Destination)
		l.drop(a)
	}
	l.forget(shown)
	return ok
}

// drop ends a, once its command has given its verdict.
func (l *loop) drop(a *applier) {
	if l.leaving == nil {
		l.leaving = map[string]*applier{}
	}
	l.leaving[a.path] = a
	close(a.dropped)
}

// forget ends those of the series that are of no template in use.
func (l *loop) forget(shown map[series]bool) {
	for _, a := range l.templates() {
		delete(shown, series{a.listed.Source, a.listed.Destination})
	}
	for s := range shown {
		l.metrics.forget(s)
	}
}

// renewed returns the applier that goes on with t: a, or a new one if a is nil.
// If there is none, or if it goes on with the template before, it returns the
// error that it has logged.
func (l *loop) renewed(a *applier, t Template) (*applier, error) {
	log := l.log.With("template", t.Source, "destination", t.Destination)
	if a == nil {
		a, err := l.add(t)
		if err != nil {
			log.Error("reloading: a new template cannot be used", "error", err)
			return nil, err
		}
		log.Info("a template was added")
		return a, nil
	}
	p, err := readProgram(t, l.cfg.Root)
	if err != nil {
		log.Error("reloading: the template before stays in use", "error", err)
	} else {
		a.listed = t
	}
	a.renew(renewal{t, p, err})
	return a, err
}

// add starts an applier of t on the state as it is.
func (l *loop) add(t Template) (*applier, error) {
	a, err := newApplier(t, l.cfg.Root, l.log, l.metrics)
	if err != nil {
		return nil, err
	}
	if before := l.leaving[a.path]; before != nil && open(before.ended) {
		a.before = before.ended // its lock, too, comes from there
	} else if err := l.lockOf(a); err != nil {
		return nil, err
	}
	delete(l.leaving, a.path)
	if l.offered != nil {
		a.offer(l.offered)
	}
	l.spawn(a)
	return a, nil
}
