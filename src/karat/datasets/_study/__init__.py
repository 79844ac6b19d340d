"""The study format: from `study.yaml` to samples, and from what participants answered back to tests.

`format` says what a study holds, `reading` and `*checks` take it from the file, finding all
faults at once. `people`, `personas`, `samples`, `seats` and `rounds` make the questions;
`fields`, `options` and `numbers` read the answers; `tests`, `experiments` and `bootstrap` hand
them to `karat.replication`. `copy` and `copied` put people's own numbers in the agent's place.
The public names stand in `karat.datasets`.
"""
