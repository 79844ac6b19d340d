"""Which columns may be the question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from karat.documents.agent_answers import BESIDE_ANSWER
from karat.documents.candidates import FOUND_IN, SHOWN, Candidates, Roles, Taken, each
from karat.documents.columns import NO_NAME, are_texts
from karat.documents.names import (
    ADDED,
    Meaning,
    Role,
    any_speaker_and_text,
    joined,
    last_part,
    meanings,
    names_documents,
    roles_of,
    side_of,
    with_role,
    word_set,
    words_of,
)
from karat.documents.sentences import FEW_ROWS, describes, holds_code, is_aside, sentences

_HEADINGS = word_set("title subject headline premise")
_BODIES = word_set("description body text content message hypothesis")
_NAMES = _HEADINGS | {"name"}
_PLACES = word_set(
    """chunk chunks doc docs document documents passage passages page pages url urls file files
    filename article articles citation citations"""
)
_CLASSES = word_set("category class label labels")
_COUNTS = word_set("index idx row line item number")
_NOTES = word_set("note notes comment comments remark remarks explanation")
_LONG = 25  # characters of a text that is no value to be found in another
_FEW_COLUMNS = 4  # of which any text may be what is asked


def questions_of(
    file: Candidates,
    goldens: Collection[str],
    shapes: Roles,
    *,
    answers: Collection[str],
) -> list[Taken]:
    """What may be the question, the likeliest first; `goldens`, `answers`: columns that are not.
    Empty: no name says so.
    """
    if "question" in file.named:
        return [{}]
    asks = [path for path in file.strong("question") if _asks(file, path, exact=True)]
    if any(joined(path) == "question" for path in asks):
        asks = [path for path in asks if joined(path) not in ("query", "prompt")]
    asks = [path for path in asks if path not in goldens and not _inside_golden(path)]
    asks = file.without_copies(asks)
    if len(asks) > 1:
        return _of_several(file, asks)
    if asks:  # if all rows say the same, others that do not
        column = file.free[asks[0]]
        others = []
        if file.door == "dataset" and column.is_constant and column.rows >= SHOWN:
            for path in file.texts():
                if _differs(file, path) and path not in (asks[0], *goldens):
                    others.append(path)

        file.unsure = file.unsure or bool(others)
        return each("question", (*others[: SHOWN - 1], asks[0]))

    if "messages" in shapes:
        if file.door == "results":
            chats = [path for path in shapes["messages"] if not file.columns[path].replies]
            return each("question", chats) or [{}]

        return each("question", shapes["messages"])

    inside = [path for path in file.inside("question") if _asks(file, path)]
    if inside:
        whole = []  # the objects around several of them, which are text with a line for each key
        for path in file.strong("question"):
            parts = [part for part in inside if part.startswith(f"{path}.")]
            if file.free[path].objects and len(parts) > 1:
                whole.append(path)

        if whole:
            inside = [path for path in sentences(file.columns, "question") if path in inside]
        return each("question", (*whole, *inside))

    weak = [path for path in file.called("question", weak=True) if _differs(file, path)]
    sides = {side_of(last_part(path)) for path in file.free}
    if "assistant" not in sides:
        weak = [path for path in weak if side_of(last_part(path)) is None]
    weak = [path for path in weak if path not in (*goldens, *answers)]
    if weak:
        return each("question", weak)
    # ids join the rows to questions, or a row has a golden answer and an answer
    by_id = {"id", *ADDED.identifying} & {*shapes, *file.named}
    right = goldens or "golden" in file.named
    said = "answer" in file.named or file.strong("answer") or answers
    if file.door == "results" and (by_id or (right and said)):
        return [{}]
    return []


def _of_several(file: Candidates, asks: list[str]) -> list[Taken]:
    """Several columns under exact names: each alone, or an instruction and its input."""
    varying = []
    for path in asks:
        if not file.free[path].is_constant:
            varying.append(path)

    by_name = {joined(path): path for path in asks}
    instruction = by_name.get("instruction") or by_name.get("instructions")
    given = by_name.get("input") or by_name.get("question")
    if instruction is not None and given is not None:
        both: Taken = {"question": (instruction, given)}
        if instruction not in varying:
            return [both, {"question": (given,)}]
        alone = each("question", asks)
        return [both, *alone]

    if len(varying) == 1:
        return [{"question": (varying[0],)}]
    return each("question", asks)


def _asks(file: Candidates, path: str, *, exact: bool = False) -> bool:
    """Whether cells can be a question: words, or anything but objects under an exact name."""
    column = file.free[path]
    if column.is_hashed:
        return False
    if not exact:
        return column.is_text
    if 2 * column.objects >= column.filled:
        return False
    if 2 * column.messages > column.filled or not isinstance(column.example, list):
        return True
    return not any(isinstance(part, Mapping) for part in column.example)


def _differs(file: Candidates, path: str) -> bool:
    """Whether cells hold words that differ from row to row, as questions do."""
    column = file.free[path]
    differs = 2 * len(column.values) >= min(column.filled, FEW_ROWS)
    return column.is_text and differs and not column.is_hashed


def add_texts(
    file: Candidates,
    shapes: Roles,
    goldens: list[Taken],
    questions: list[Taken],
) -> None:
    """Offers text columns for a role that no name speaks of: to choose from, never to take."""
    texts = file.texts()
    if not questions and not file.named.get("question"):
        questions += each("question", file.sparse("question"))
        file.unsure = True

    if not questions and not goldens and all(path.startswith(NO_NAME) for path in texts):
        said: Role = "golden" if file.door == "dataset" else "answer"
        columns = sorted(texts)[:3]
        questions += each("question", columns)
        if said == "answer" and len(columns) > 2:
            first, second = columns[1:]
            goldens.append({"golden": (first,), "answer": (second,)})
            goldens.append({"golden": (second,), "answer": (first,)})

        goldens += [{said: (path,)} for path in columns[1:]]
        if file.door == "dataset":
            goldens.append({})
        file.unsure = True

    answered = any("answer" in golden for golden in goldens) or "answer" in file.named
    if not questions and goldens and (answered or file.door == "dataset"):
        _offer_questions(file, texts, goldens, questions)
    elif questions and not goldens and file.door == "dataset":
        _offer_goldens(file, shapes, texts, goldens, questions)
    elif questions and not goldens and not any(c.messages for c in file.columns.values()):
        used = set()
        for question in questions:
            used |= {*question.get("question", ())}

        offers = []
        for path in sentences(file.columns, "answer"):
            if used and path not in used:
                offers.append(path)

        offers = [path for path in offers if not _is_part(file, path, used)]
        if file.holds_preferences:
            offers = []
        right = []
        for path in file.strong("golden"):
            if file.holds_answer(path):
                right.append(path)

        golden: Taken = {"golden": (right[0],)} if len(right) == 1 else {}
        for path in offers:
            if path not in right:
                goldens.append({**golden, "answer": (path,)})
    elif not questions and not goldens and not file.named:
        _offer_both_ways(file, goldens, questions)


def _offer_questions(
    file: Candidates,
    texts: Sequence[str],
    goldens: list[Taken],
    questions: list[Taken],
) -> None:
    """Offers as question what is no answer: dialogues, a heading and its text, texts."""
    used = set[str]()
    for golden in goldens:
        used |= {*chain.from_iterable(golden.values())}

    answers = set[str]()
    for path in used:
        answers |= file.columns[path].values

    for path in texts:
        values = file.columns[path].values
        is_copy = bool(values) and values <= answers  # the better of two answers
        if joined(path) in _CLASSES or is_copy:
            used.add(path)

    offers = []
    classes = set()  # columns of single words, as classes and codes are
    for path in dict.fromkeys([*texts, *sentences(file.columns, "question")]):
        if path in used or _inside_golden(path):
            continue
        offers.append(path)
        column = file.columns[path]
        if column.texts and not column.has_spaces:
            classes.add(path)

    offers.sort(key=lambda path: (path in classes, describes(path)))
    dialogues = []  # of which a row may have a class
    for path, column in file.free.items():
        listed = column.example
        if path in used or not isinstance(listed, list) or len(listed) < 2:
            continue
        if all(any_speaker_and_text(part) is not None for part in listed):
            dialogues.append(path)

    offers = [*dialogues, *_with_objects(file, offers)]
    bodies = _bodies(offers)
    for paths in bodies:
        questions.append({"question": paths})

    questions += each("question", offers)
    _add_record(file, goldens[0], questions, offers)
    heads = []
    for path in file.free:
        if joined(path) in _NAMES and _differs(file, path):
            heads.append(path)

    if heads and offers and not bodies:
        questions.append({"question": (heads[0], offers[0])})
    file.unsure = True


def _offer_goldens(
    file: Candidates,
    shapes: Roles,
    texts: Sequence[str],
    goldens: list[Taken],
    questions: list[Taken],
) -> None:
    """Offers as golden answer what is not asked: where it is found, texts, yes or no, and rules."""
    used = set[str]()
    for question in questions:
        used |= {*question.get("question", ())}

    offers = _beside(file, texts, used)
    for path, column in file.free.items():
        both = column.is_yes_or_no and len(column.values) == 2  # such as 0 and 1
        of_rows = column.filled == column.rows and "." not in path
        if both and of_rows and path not in used:
            offers.append(path)

    for path in shapes.get("id", ()):
        if file.columns[path].repeats:
            offers.append(path)

    for path, column in file.free.items():
        held = column.example  # sentences, as rules of several sorts are
        if "." in column.path or meanings(column.path) or not isinstance(held, Mapping):
            continue
        worded = held and are_texts(held.values())
        worded = worded and all(len(text.split()) > 3 for text in held.values())
        asked_of = any(asked.partition(".")[0] == path for asked in used)
        if worded and not asked_of:
            goldens.append({"criterion": (path,)})

    values = _values(file, used)
    found = _in_order([*dict.fromkeys(offers)][: SHOWN - 1 - len(goldens)])
    if len(values) > 1 and not {*offers} - {*values}:
        found.insert(min(1, len(offers)), {"golden": tuple(values)})
    goldens += found
    file.unsure = True


def _beside(file: Candidates, texts: Sequence[str], used: Collection[str]) -> list[str]:
    """The columns beside a question that may say what is right: where it is found, texts, what is
    right by its name in an object of other things, else notes.
    """
    places = []
    for path in file.free:
        if is_place(file, path) and path not in used:
            places.append(path)

    offers = places[: SHOWN // 2]
    for path in texts:
        taken = path in used or path in places
        if not taken and joined(path) not in BESIDE_ANSWER | {"id"}:
            offers.append(path)

    if not offers:  # where the answer is found, say
        for path in file.free:
            around = any(f"{asked}.".startswith(f"{path}.") for asked in used)
            if _may_be_found(file, path) and not around:
                offers.append(path)

    for path in with_role(file.columns, "golden"):
        if is_aside(path) and file.columns[path].filled:
            offers.insert(0, path)

    if not offers:  # the only words on it
        for path, column in file.free.items():
            if column.is_text and joined(path) in _NOTES:
                offers.append(path)

    return offers


def _add_record(
    file: Candidates,
    golden: Taken,
    questions: list[Taken],
    texts: Sequence[str],
) -> None:
    """Offers the columns that are asked together, as values of a record, if there are some and most
    are no texts: after the first of the `texts`, if that does not only describe a row.
    """
    used = golden.get("golden", ())
    if not any(Meaning("golden") in meanings(path) for path in used):
        return
    found, values = [], 0
    for path, column in file.columns.items():
        roles = roles_of(path)
        others = roles - {"question", "golden", "condition", "metadata", "cluster"}
        if "." in path or path in used or others or not column.filled or column.is_constant:
            continue
        if column.objects + column.lists:
            continue
        is_value = column.is_numeric or not column.has_spaces
        if is_value or not describes(path):
            found.append(path)
            values += is_value

    if len(found) > 2 and 2 * values > len(found):
        place = 1
        if not texts or describes(texts[0]):
            place = 0
        questions.insert(place, {"question": tuple(found)})


def _in_order(paths: Collection[str]) -> list[Taken]:
    """The columns as golden answers, those that describe the question after none at all."""
    about = [path for path in paths if describes(path)]
    others = [path for path in paths if not describes(path)]
    return [*each("golden", others), {}, *each("golden", about)]


def _with_objects(file: Candidates, offers: Collection[str]) -> list[str]:
    """The columns, each object with several of them or of their kind before its parts."""
    found: dict[str, None] = {}
    for path in offers:
        above = path.rpartition(".")[0]
        if above in file.columns and file.columns[above].objects and "." not in above:
            texts = 0
            for part, column in file.columns.items():
                texts += part.startswith(f"{above}.") and column.is_text

            if texts > 1:
                found[above] = None

        found[path] = None

    return [*found]


def _is_part(file: Candidates, path: str, questions: Collection[str]) -> bool:
    """Whether the texts of a column are parts of questions, as a headline is one of its article."""
    own = file.columns[path]
    for asked in questions:
        whole = file.columns[asked]
        texts = "\n".join(whole.values)
        inside = sum(value in texts for value in own.values)
        if str(own.example) in str(whole.example) and 2 * inside > len(own.values):
            return True

    return False


def _offer_both_ways(file: Candidates, goldens: list[Taken], questions: list[Taken]) -> None:
    """Texts that no name explains: each of the first two may be asked, and the others are answers,
    those of several systems together or one of them.
    """
    if file.door == "dataset":
        texts = sentences(file.columns, "question")
        if not texts and len(file.free) <= _FEW_COLUMNS and len(file.texts()) > 1:
            texts = file.texts()
        if not texts:
            return
        headings = [path for path in file.free if joined(path) in _HEADINGS]
        may_ask: list[tuple[str, ...]] = [*_bodies([*texts, *headings])]
        may_ask += [(path,) for path in texts[:2]]
        others = [path for path in file.free if _may_be_found(file, path)]
        questions += [{"question": paths} for paths in may_ask]
        goldens += _in_order(others[: SHOWN - 1])
        values = _values(file, texts[:1])
        if len(values) > 1:
            goldens.insert(1, {"golden": tuple(values)})
        _add_record(file, goldens[0], questions, texts)
        file.unsure = True
        return

    right = file.strong("golden")[:1]
    found = {*sentences(file.columns, "question")} - {*right}
    texts = [path for path in file.columns if path in found]
    if len(texts) < 2:
        return
    golden: Taken = {"golden": tuple(right)} if right else {}
    for asked in texts[:2]:
        questions.append({"question": (asked,)})
        rest = tuple(path for path in texts if path != asked)
        if len(rest) > 1:
            goldens.append({**golden, "answer": rest})

    goldens += [{**golden, "answer": (path,)} for path in texts]
    file.unsure = True


def _values(file: Candidates, asked: Collection[str]) -> list[str]:
    """The columns beside what is `asked` with short texts or numbers that no name explains: what
    may have to be found in it, together.
    """
    found = []
    for path, column in file.free.items():
        if "." in path or path in asked or column.lists + column.objects:
            continue
        if column.mean_length >= _LONG or column.numbers_rows or is_place(file, path):
            continue
        if joined(path) in BESIDE_ANSWER or path in FOUND_IN:
            continue
        if not roles_of(path) - {"golden"} and _COUNTS.isdisjoint(words_of(path)):
            found.append(path)

    return found


def _bodies(paths: Collection[str]) -> list[tuple[str, ...]]:
    """A heading and the text below it, if there are such."""
    heads = []
    for path in paths:
        if joined(path) in _HEADINGS:
            heads.append(path)

    bodies = [path for path in paths if joined(path) in _BODIES]
    if heads and bodies:
        return [(heads[0], bodies[0])]
    return []


def is_place(file: Candidates, path: str) -> bool:
    """Whether a column names the document or the part of one in which an answer is found."""
    column = file.columns[path]
    if _PLACES.isdisjoint(words_of(last_part(path))) or not names_documents(path):
        return False
    if column.objects or (Meaning("id") in meanings(path) and not column.repeats):
        return False
    if column.lists:
        return True
    return len(column.values) > 1 and (column.is_text or column.is_numeric)


def _may_be_found(file: Candidates, path: str) -> bool:
    """Whether cells are what may be expected of an answer: several files, pages or labels."""
    column = file.free[path]
    roles = {meaning.role for meaning in file.meanings[path]}
    if roles & {"id", "started", *ADDED.identifying}:
        return False
    if joined(path).endswith(("id", "name", "note", "notes", "comment")):
        return False
    if path in FOUND_IN or column.is_hashed or holds_code(column):
        return False
    structured = 2 * (column.lists + column.objects) > column.filled
    if structured and "." not in path:
        return True
    return column.is_text and len(column.values) > 1


def _inside_golden(path: str) -> bool:
    """Whether a column is inside an object that is a golden answer or a criterion by its name."""
    for parent in path.split(".")[:-1]:
        roles = roles_of(parent)
        if roles & {"golden", "criterion"} and "question" not in roles:
            return True

    return False
