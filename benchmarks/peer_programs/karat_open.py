"""Reads a finished run of karat: `karat_open.py header|sample|scores FOLDER COUNT`."""

import sys

import karat

what, path, count = sys.argv[1:]
run = karat.open(path)
if what == "header":
    assert run.status() == "done"
    assert run.info.name == "instant"
elif what == "sample":
    rows = karat.query(run, "SELECT * FROM trials WHERE sample = '5'").rows
    assert len(rows) == 1
else:
    values = [event.values for event in run.events() if isinstance(event, karat.Score)]
    assert len(values) == int(count)
