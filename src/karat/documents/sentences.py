"""Columns with sentences that no name explains: a question or an answer may be among them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from karat.documents.columns import Column, Columns
from karat.documents.names import (
    ADDED,
    Meaning,
    Role,
    last_part,
    meanings,
    names_documents,
    word_set,
    words_of,
)

NO_WORDS = re.compile(
    r"https?://\S+|[0-9a-f-]{16,}|(\d{4}-\d\d-\d\d|\d{1,4}[./]\d{1,2}[./]\d{1,4})([T ].{,25})?"
)
"""URLs, ids and dates: no question or answer consists of one."""
INSTRUCTION = re.compile(
    r"(?:the |an? |die |el |la |le |o |a )?"
    r"(?:(?:\w+ )?(?:agents?|assistants?|assistent|answers?|responses?|repl(?:y|ies)|model\w*|bot|"
    r"chatbot|system|sistema|ai|llm|it|output|antwort|respuesta|resposta|réponse|ответ|бот|модель)"
    r"\b.{0,30}?\b(?:should|must|needs? to|has to|is expected to|will not|debe\w*|deve\w*|soll\w*|"
    r"muss|doit|devrait|долж\w+|refuses|declines|mentions|explains|asks|identifies|acknowledges)\b"
    r"|(?:should|must|expected to|needs to|do not|avoid|debe|deve|doit|devrait|soll|sollte|muss)\b"
    r"|(?:politely |correctly |clearly |briefly )?(?:refus|declin|mention|explain|describ|"
    r"acknowledg|clarif|redirect|escalat|respond|cit)(?:e|y|es|ies|s)?\b(?! to\b)"
    r"|(?:this (?:is an?|question)|(?:the )?(?:user|customer|question) (?:asks|wants|is|needs))\b)"
    r"|拒答|拒绝|转人工|(?:基于|结合)知识库|(?:准确|正确|明确)(?:地)?(?:回答|说明|指出|引用|对比|识别|拒绝|告知)"
    r"|(?:告知|提示|引导)用户|(?:助手|模型|回答|系统|智能体|应|必须|需要|应该)(?:应|需|必须|要|该)"
    r"|(?:应|须|需|必须|应该|应当)(?:提及|提到|包含|包括|解释|返回|说明|指出|给出|列出|强调|拒绝)",
    re.IGNORECASE,
)
"""What tells how to judge an answer, and gives none, begins like this."""
_CONDITION = re.compile(
    r"(?:not )?(?:len\(|any\(|all\()?"
    r"(?:[a-z_]\w*(?:\.\w+|\[[^\]]+\])*\)? ?(?:==|!=|>=|<=|<|>) ?\S.*"
    r"|(?:'[^']*'|\"[^\"]*\") (?:not )?in [a-z_]\w*(?:\.\w+|\[[^\]]+\])*)"
)
FEW_ROWS = 40
"""Rows whose values are enough to tell questions from classes."""
_SENTENCE = 15  # characters on average; names and classes are shorter
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{3}")
"""Japanese and Chinese, in which a character says as much as a third of a word."""
_ASKS = re.compile(
    r".*[?？؟]\W*|¿.*|(?:what|how|why|who|whom|whose|when|where|which|is|are|does|do|did|can)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_ASIDE = word_set(
    """metadata additionalmetadata meta config usage extra info annotations annotation scores
    metrics params parameters settings context contexts evidence"""
)
_REMARKS = (("note",), ("notes",), ("comment",), ("comments",), ("remark",), ("remarks",))
_SAYS_LITTLE = frozenset(
    {"metadata", "cluster", "condition", "turn", "context", "id", *ADDED.identifying}
)
"""Roles of names such as `title`, which may also be a question's or an answer's."""


_REASONS = word_set(
    """reason reasons reasoning explanation rationale justification feedback comment comments note
    notes remark remarks judgment judgement critique details"""
)
_NOT_JUDGED = re.compile(
    r"""\W*(?:
    (?:could\ not|couldn't|cannot|can't|unable\ to|failed\ to|error|exception)
    (?:\ while|\ during|\ when|\ in)?\ (?:the\ )?
    (?:pars(?:e|ing)|decod(?:e|ing)|judg(?:e|ing)|evaluation|grad(?:e|ing)|scor(?:e|ing)|calling|extract)
    \b(?!.{,30}\b(?:answer|prediction|agent|question|claim|date)\b)
    |(?:\w+\ )?(?:judge|judg(?:e?ment)|grader|evaluator|evaluation|scoring|grading|pars(?:e|ing)|
    json(?:\ (?:decode|parse|parsing))?|llm|api)[\ _](?:\w+\ )?
    (?:error|exception|failure|failed)
    (?=\W*$|[:;.,(]|\ (?:while|during|due|after|to\ (?:pars|return|respond)))
    |error:.{,40}\b(?:judge|parsing|json)\b
    |no\ (?:valid\ )?(?:json|score|rating|verdict)\ (?:was\ )?(?:found|returned|in)
    |invalid\ (?:json|judge)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def explains(path: str) -> bool:
    """Whether a name is of what a judge or a reader says of an answer."""
    return bool(_REASONS & {*words_of(last_part(path))})


def explained_by(score: Column, columns: Mapping[str, Column]) -> list[str]:
    """The columns beside a score with what was said of it, or of all scores of its object."""
    own = {*words_of(score.path)}
    above = score.path.rpartition(".")[0]
    found = []
    for path, column in columns.items():
        beside = path.rpartition(".")[0] == above and column.texts > 0
        if beside and explains(path) and {*words_of(path)} - _REASONS <= own:
            found.append(path)

    return found


def says_not_judged(text: str) -> bool:
    """Whether words beside a score say that judging failed, as evaluation libraries write it.

    >>> says_not_judged("Could not parse judge output."), says_not_judged("Parse error: line 1")
    (True, True)
    >>> says_not_judged("Evaluation failed to mention Paris"), says_not_judged("Error in the sum")
    (False, False)
    """
    return _NOT_JUDGED.match(text) is not None


def holds_code(column: Column) -> bool:
    """Whether cells are conditions in code, such as `route.is_open == True`, and no answers."""
    listed = column.example if isinstance(column.example, list) else [column.example]
    found = 0
    for text in listed:
        found += isinstance(text, str) and _CONDITION.fullmatch(text.strip()) is not None

    return 2 * found > len(listed)


def tells_how_to_judge(column: Column) -> bool:
    """Whether most cells tell how to judge an answer, and give none."""
    instructions = [*filter(INSTRUCTION.match, column.values)]
    return len(instructions) > 1 and 2 * len(instructions) > len(column.values)


def asks(column: Column) -> bool:
    """Whether most cells are questions."""
    return 2 * sum(map(bool, map(_ASKS.fullmatch, column.values))) > len(column.values) > 1


def describes(path: str) -> bool:
    """Whether a name is of what is said about a question: its title, class, difficulty, a note."""
    words = words_of(path)
    known = {*meanings(path)}
    if not known and words:
        known = {*meanings(words[-1])}
    roles = {meaning.role for meaning in known if not meaning.weak}
    about = bool(roles) and roles <= {"metadata", "cluster", "reason"}
    return about and not names_documents(path)


def is_aside(path: str) -> bool:
    """Whether a column is inside an object that holds no part of a question."""
    parents = path.split(".")[:-1]
    return any("".join(words_of(parent)) in _ASIDE for parent in parents)


def unexplained(
    columns: Columns,
    roles: Mapping[Role, Sequence[str]],
    role: Role,
) -> list[str]:
    """Columns with sentences for a role that is empty, or for a question with a weak name."""
    decided = roles.get(role, ())
    sure = role != "question" or any(Meaning(role) in meanings(path) for path in decided)
    if "messages" in roles or (decided and sure):
        return []
    paths = sentences(columns, role)
    if decided:
        paths = [path for path in paths if not meanings(path)]
    kept = set()
    for of, taken in roles.items():
        if of not in _SAYS_LITTLE:
            kept |= {*taken}

    found: list[str] = []
    for path in paths:
        if not {path, path.partition(".")[0]} & kept:
            found.append(path)

    return found


def sentences(columns: Columns, role: Role) -> list[str]:
    """Columns with sentences that differ from row to row, and no name that says what else they
    are.
    """
    may_be = _SAYS_LITTLE if role == "question" else _SAYS_LITTLE - {"context"}
    found = []
    for path, column in columns.items():
        known = meanings(path) or meanings(words_of(path)[-1] if words_of(path) else path)
        said = {meaning.role for meaning in known if not meaning.weak}
        inside = is_aside(path) or path.count(".") > 1
        if not said <= may_be or inside or not column.is_text:
            continue
        if role == "golden" and words_of(path)[-1:] in _REMARKS:
            continue
        shortest = _SENTENCE
        if not known and _UNSPACED.search(str(column.example)):
            shortest //= 3
        if 2 * column.filled < column.rows or column.mean_length < shortest:
            continue
        if 2 * len(column.values) < min(column.filled, FEW_ROWS):
            continue
        text = column.example
        if not isinstance(text, str) or NO_WORDS.fullmatch(text.strip()):
            continue
        if len(text.split()) > 2 or not text.isascii():
            found.append(path)

    return found
