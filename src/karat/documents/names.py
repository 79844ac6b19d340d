"""What a column's name alone says about its role.

A grammar of words rather than a list: `expected`, `reference`, `gold`, … with `answer`, `output`,
… is a golden answer, and `model`, `generated`, … with the same words is the agent's. Names that
several tools use for different things are weak: `roles` decides them by their company.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from karat.documents.column_names import added
from karat.documents.languages import english_words, in_english

Known = Literal[
    "question",
    "golden",
    "answer",
    "choices",
    "distractor",
    "context",
    "criterion",
    "id",
    "repetition",
    "condition",
    "model",
    "cluster",
    "score",
    "reason",
    "error",
    "stop_reason",
    "latency",
    "cost",
    "tokens",
    "started",
    "tools",
    "messages",
    "turn",
    "metadata",
]
Role = str
"""One of those, or a role that a package beside the core adds."""
ADDED = added()


class Meaning(msgspec.Struct, frozen=True):
    """A role that a name suggests; `weak`: only if the other columns agree."""

    role: Role
    weak: bool = False


_MERGED = (
    ("ground", "truth"),
    ("ground", "truths"),
    ("gold", "standard"),
    ("right", "answer"),
    ("f", "1"),
)


@lru_cache(maxsize=4096)  # a column's name is asked for by many rules
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `expectedOutput`, `expected output` and `Expected_Output`
    are the same.
    """
    merged: list[str] = []
    for word in english_words(name):
        if merged and (merged[-1], word) in _MERGED:
            merged[-1] = in_english(merged[-1] + word)
        else:
            merged.append(word)

    return tuple(merged)


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_GOLD = word_set(
    """expected expect reference references ref gold golden goldstandard ideal correct rightanswer
    groundtruth groundtruths gt truth canonical acceptable accepted desired oracle"""
)
_GOLD_ADJECTIVES = word_set(
    "verified human expert official annotated best true final key generation"
)
_AGENT = word_set(
    """model generated predict predicted prediction predictions pred preds actual agent ai bot
    chatbot assistant llm rag system sampled produced candidate hypothesis raw student mymodel gpt
    chatgpt claude llama gemini mistral qwen deepseek baseline submitted provided observed got admin
    operator staff"""
)
SAID = word_set(
    """answer answers output outputs response responses text sql query reply replies completion
    completions solution solutions result label labels intent intents summary code value values
    category class program translation message content option choice letter index
    idx patch decision caption captions"""
)
DECIDED = word_set("choice chosen decision selection selected pick action")
"""Names of what an agent chose, in files of results."""
_OF_AN_ANSWER = word_set("span passage excerpt quote snippet sentence")
_FILLERS = word_set("the a an final full raw text texts str string clean list all 1 of for to")
_FILLERS |= word_set(
    "câu cau en bn hi ta te mr ur fr de es it pt ru uk zh ja ko ar fa he tr nl pl vi sv cs"
)
_TIMES = word_set("latency duration elapsed time")
_TIMED = word_set("response answer inference generation execution processing run total taken")
_UNITS = word_set("s sec secs second seconds ms milliseconds")
_ENDS_OF_IDS = word_set("id ids uuid url urls score type length count number")
_DOCUMENTS = word_set(
    """id ids refs doc docs document documents source sources file files filename page pages slug
    slugs url urls link links path paths chunk chunks passage passages citation citations section
    sections article articles"""
)
_OF_NUMBERS = word_set("unit units currency tolerance precision")
_ABOUT_IT = word_set(
    """id type mode kind number category count system judge sub template lang language hint topic
    source index length tokens"""
)
_ASKERS = word_set("user customer client human visitor caller")
_ASKED_BY_PEOPLE = word_set("message query question input utterance request prompt")
_FORBIDS = word_set(
    """forbidden forbid forbids prohibited prohibits banned disallowed unexpected unwanted undesired
    avoid avoids unacceptable impermissible inadmissible pitfalls taboo"""
)
"""Words of what an answer must not hold."""
_FAILS = frozenset(
    (fails, rest)
    for fails in ("failure", "fail", "failing")
    for rest in word_set("mode modes condition conditions criteria signals if")
) | {("red", "flag"), ("red", "flags")}
"""Names of what makes an answer fail."""
_FAULTY = word_set("incorrect wrong false bad")
_STATEMENTS = word_set("claim claims fact facts statement statements term terms keywords phrases")
_MISTAKES = word_set("avoid mistakes misconceptions traps pitfalls")
"""Last words of names of what is wrong in an answer."""
_REQUIRED = word_set(
    """section sections element elements fact facts point points content information concept
    concepts claim claims statement statements step steps topic topics detail details aspect aspects
    action actions component components item items evidence"""
)
"""What an answer must have, where `required` precedes it."""
_OF_ANSWERS_ONLY = word_set(
    """answer reference gold golden groundtruth ideal expected key main core essential atomic
    positive necessary mandatory"""
)
_MADE_OF = word_set(
    "fact facts point points topics claims statements concepts aspects elements themes"
)
"""What a right answer is made of, where one of those words precedes it: `answer_facts`."""
_OF_OTHERS = word_set("context contexts chunk chunks retrieval search question query source")
"""Words of names of what is found or asked, and not answered: `ideal_context_keywords`."""
_JUDGING = word_set(
    """marking grading scoring evaluation eval judge judging assessment acceptance success pass
    passing rating answer expected"""
)
_RULES = word_set(
    """criterion criteria rubric rubrics scheme guide guideline guidelines instructions rule rules
    condition conditions checklist"""
)
"""Last words of names of rules, where one of those words precedes them: `MarkingCriterion`."""
_DEMANDS = _FORBIDS | word_set(
    """expected expect must should gold golden goldens relevant mandatory"""
)
_RIGHT_ONES = word_set("groundtruth groundtruths gt correct ideal truth")
"""First words of names of the documents that are right: `ground_truth_ids`."""
_MADE_BY = word_set("status origin author annotator version date by")
"""Last words of names that say how a golden answer came to be: `gold_status`."""
_WHAT_IS_EXPECTED = word_set("keywords tools sources documents terms facts points answer output")
_DENIES = word_set("not no non never without")

_EXACT: dict[Role, str] = {
    "question": """question query prompt prompts input inputs userinput userquery userquestion
        userprompt usermessage instruction instructions problem problemstatement testinput
        inputtext inputprompt inputquestion q queries questions utterance questiontext
        queryText querytext modelinput agentinput llminput prompttext testquestion testquery
        taskprompt testcaseinput stem questionstem itemstem""",
    "golden": """golden gold goldanswer goldenanswer expected expect reference references ref ideal
        groundtruth groundtruths gt truth answerkey possibleanswer possibleanswers
        answermatchingbehavior canonicalsolution exeans correct correctanswer correctanswers
        cop target targets bestanswer referenceanswer referenceanswers rightanswer""",
    "answer": """prediction predictions pred preds predicted generated actual hypothesis sampled
        resps filteredresps multiresponses rawresponse rawoutput outputtext responsetext finaltext
        finaloutput finalresponse fulfillmenttext
        llmresponse answerpreview outputpreview responsepreview got
        extracted""",
    "choices": """choices options answerchoices answeroptions multiplechoice endings candidates
        mctargets mc1targets mc2targets alternatives possibleanswerslist mcq mcchoices""",
    "distractor": """distractors incorrectanswers wronganswers incorrectanswer wronganswer
        incorrectoptions""",
    "context": """context contexts history chathistory retrievedcontexts retrievedcontext passage
        passages paragraphs paragraph files retrievalcontext retrievalcontexts table pretext
        posttext documents referencecontexts referencecontext evidence supportingfacts
        retrievedchunks retrieveddocuments retrieveddocs chunks sources premise story contexttext
        sourcetext groundtruthcontext groundtruthcontexts goldcontext goldcontexts""",
    "criterion": """criteria criterion rubric rubrics rubricitems assertions assertion assert
        asserts nlassertions expectations checks evaluationcriteria acceptancecriteria
        successcriteria scoringcriteria gradingcriteria markingcriteria keyfacts keypoints
        requiredfacts goldurl goldurls testlist keywords must acceptable checklist checklists""",
    "id": """id questionid queryid itemid caseid testid sampleid qid uid uuid taskid exampleid
        index no row rowid num number financebenchid datasetid docid customid testcaseid case
        evalid key idx promptid scenarioid""",
    "repetition": """repetition repetitionnumber trial epoch repeat run attempt iteration seed rep
        rollout repetitionidx repetitionindex trialidx trialindex trialnumber runidx runindex
        runnumber repeatidx repeatindex epochidx attemptidx attemptnumber iterationidx repidx""",
    "condition": """condition variant variantid experiment config system method framework pipeline
        strategy setting mode evalmode agent promptlabel promptidx promptversion promptvariant
        promptstyle prompttype backend arm treatment approach app agentid agentname
        pipelineversion
        experimentalgroup groupexperimental treatmentgroup experimentalcondition scaffold""",
    "model": """model modelname namemodel modelid modelnameorpath generator provider providerid
        modeltested modelundertest llm engine respondermodel chatmodel agentmodel
        candidatemodel testedmodel evaluatedmodel targetmodel assistantmodel llmmodel""",
    "cluster": "source sourcefile docname documentid company topic title group cluster sourcedoc "
    "sourcedocument documentname filename file",
    "reason": """comment comments rationale rationales reasoning justification reason reasons
        explanation explanations feedback judgereasoning""",
    "error": """error errors errormessage exception failurereason errortype err stderr traceback
        fatal""",
    "stop_reason": "stopreason finishreason donereason",
    "latency": """latency latencyms latencys latencyseconds duration durationms durations elapsed
        elapsedms responsetime responsetimems timesec totaltime completiontime seconds time timems
        timeseconds latencysec executiontime""",
    "cost": "cost costusd totalcost tokencost price dollars",
    "tokens": """prompttokens completiontokens inputtokens outputtokens tokenusage usage
        totaltokens tokens tokenlen numtokens""",
    "started": """timestamp createdat createtime createdtime tstamp started startedat date datetime
        time""",
    "tools": "toolscalled toolcalls function functions tools actualtools",
    "messages": "messages turns traj trajectory chat thread transcript",
    "turn": "turn turnid turnnumber turnindex",
    "metadata": """category categories questiontype type level difficulty split domain tags tag
        metadata additionalmetadata meta notes note description name confidence rank length count
        weight version lang language subset section page priority""",
}
_WEAK: dict[Role, str] = {
    "golden": """sqlquery querysql sqlstatement answer answers output outputs response responses
        completion completions solution label labels intent summary sql query code value
        result reply finalanswer answertext shortanswer longanswer fullanswer
        expectedresponse targetresponse targetoutput program cypher translation class
        verdict outcome decision finaldecision patch category completiontext groundtruthlabel ai
        bot chatbot assistant therapist counselor doctor tutor answerindex answeridx answernumber
        answerletter labelindex labelidx answeraliases""",
    "question": """text task goal scenario statement dialogue dialog article passage document ctx
        claim intent message ticket tickettext sentence situation request userrequest vignette
        user human patient client student seeker""",
}
_SCORES = word_set(
    """faithfulness answerrelevancy answerrelevance contextprecision contextrecall
    answercorrectness answersimilarity contextrelevancy contextrelevance groundedness relevance
    relevancy coherence fluency helpfulness correctness completeness accuracy factuality score
    scores success passed pass reward acc exactmatch em f1 similarity rouge rouge1 rouge2 rougel
    bleu chrf comet mrr ndcg recall precision iscorrect rating grade humanmajority preference
    hallucination bias toxicity falserefusal wer cer perplexity loss semanticsimilarity
    adequacy conciseness informativeness
    cosinesimilarity bertscore rr metrics evaluation ispassed ispass hit hitrate verdict judgement
    judgment followallinstructions overall verified reciprocalrank averageprecision thumbs helpful
    satisfaction usersatisfaction empathy safety harmlessness politeness usefulness"""
)
_SCORE_ENDS = word_set(
    """score scores rating grade f1 recall precision accuracy similarity em pass passed correct
    match matched hit hits correctness adherence compliance compliant validity
    contradictions violations overlap success"""
)
_SCORE_STARTS = word_set("score grade recall precision ndcg mrr hit hits pass success judge valid")
_QUALITIES = word_set(
    """faithfulness groundedness relevance relevancy coherence fluency similarity helpfulness
    completeness hallucination adequacy conciseness informativeness"""
)
_RATERS = word_set("rater annotator reviewer grader evaluator")
"""Who judges, where a number follows: `rater1`."""
_QUALITIES_OF_ANSWERS = word_set(
    "answerquality responsequality overallquality winner contextutilization"
)
_SCORE_HOLDERS = word_set(
    "score scores metric metrics evaluation evaluations judgment judgement judge ratings grades "
    "feedback verdict verdicts"
)
"""Words of the names of objects whose numbers are scores."""
_NO_SCORE = word_set(
    """difficulty complexity priority confidence importance retrieval search rank chunk difficult
    quality credit risk truth groundtruth expected expect gold golden reference min max minimum
    maximum threshold cache probability prob certainty uncertainty entropy anomaly"""
)
_OF_RETRIEVAL = word_set("retrieval search")
_DERIVED = word_set("both only either neither")
"""First words of names that compare the verdicts of several: `both_correct`."""
_OF_PROGRAMS = word_set(
    """parse parsed parsing http status api request call run exec execution import json load network
    judge grader evaluator"""
)
"""Words of what a program did: `parse_ok` says nothing of an answer."""
_FOUND = word_set("hit hits recall precision accuracy success mrr ndcg correct passed pass")
"""Last words of names that judge what was retrieved."""
_SCALES = frozenset({("y", "n"), ("yes", "no"), ("ja", "nein"), ("si", "no"), ("sí", "no")})
_SCALES |= frozenset({("sim", "not"), ("oui", "non"), ("ok", "ko")})
_SCALES |= frozenset(
    (str(low), str(high)) for low in (0, 1) for high in (1, 2, 3, 4, 5, 6, 7, 10, 100) if low < high
)
"""The last words of names that say on which scale people rate: `tone_1_5`, `Tone (1-5)`."""
_MEASURES = word_set(
    """latency time ms seconds sec cost usd dollars tokens token id ids index version temperature
    size length len total weight model date timestamp elapsed duration logit logprob num number
    count n start started end ended calls retries cached ok status ttft itl tpot tps qps rps
    bytes mb gb"""
)
"""Words of what is counted or measured about an answer, but does not judge it."""
_FAULTS = word_set(
    """hallucination hallucinated bias toxicity toxic fabricated wer cer perplexity contradictions
    contradiction violations violation prohibited harm harmful harmfulness
    jailbroken jailbreak attack attacks asr redundancy sycophancy sycophantic unsupported"""
)
"""Words of what an answer should not have: they judge it, and less is better."""
_SORTS = word_set("variable type category kind topic group class name dimension axis domain case")
"""Last words of names that say which fault a question is about: `bias_variable`."""
_LOWER_IS_BETTER = _FAULTS | word_set(
    """latency cost tokens refusal loss distance error errors forbidden failure failures failed
    leak leakage leaked mistake mistakes penalty deviation mae mse rmse lpips ter nll brier wrong
    misconception omission omissions hallucinations verbosity detoxify flagged violated violates
    biased offensive dangerous hateful abusive"""
)
_ALARMS = word_set("flag flags red safety content moderation policy is has")
"""Words of a flag that is raised for something bad."""
_QUALITY = word_set(
    """complete completeness correct correctness accurate accuracy relevant relevance relevancy
    faithful faithfulness grounded groundedness helpful helpfulness coherent coherence consistent
    consistency valid validity compliant compliance safe safety supported appropriate sufficient
    precise fair fairness aligned alignment clear"""
)
"""Words of what is good about an answer."""
_OPPOSITES = frozenset(
    f"{start}{word}" for start in ("in", "im", "ir", "un", "mis", "dis") for word in _QUALITY
)
"""The same turned round: `incompleteness`, `unsafe`."""
_BAD = _LOWER_IS_BETTER | _OPPOSITES
_TURNS_ROUND = word_set(
    """correct accuracy pass passed no not non free f1 recall precision caught detected avoided
    resistance quality appropriateness handling"""
)
"""Words with which a name of something bad is of something good: `refusal_correct`."""
_GOOD = _QUALITY | word_set(
    """quality grounding clarity naturalness readability fluency adequacy conciseness helpful
    informativeness usefulness factuality factual truthful truthfulness honesty harmlessness
    politeness empathy similarity f1 recall precision specificity sensitivity auc auroc bleu rouge
    chrf comet meteor bertscore mrr ndcg hit hits pass passed success match matched matches exact
    em acc verified adherence following overlap coverage utilization satisfaction preference reward
    win winner utility entailment kappa correlation ok agreement tone style structure creativity
    engagement professionalism grammar reasoning logic robustness originality novelty insight depth
    actionability trustworthiness transparency friendliness warmth respect understanding awareness
    knowledge"""
)
"""Words of what is better when there is more of it."""
_SCORED = word_set("score scores rating ratings grade mark marks points verdict evaluation reward")
"""Words of judgement that say nothing of what is judged."""
_OF_SUCCESS = _SCORED | word_set(
    "success successful succeeded pass passed hit rate is llm judge judged label result model gpt"
)
_OF_ANY_SCORE = _SCORED | word_set(
    """rate ratio percent pct share overall total global final mean average avg human manual llm ai
    gpt auto judge judged norm normalized normalised weighted is has the of at k n top mode eval
    value answer answers response output context retrieval retrieved document documents keyword
    keywords term key fact facts claim claims semantic cosine token strict lenient partial full all
    tool tools format json schema sql text flag flags check checks result test label citation
    citations source sources instruction instructions grading model user"""
)
"""Words beside which `score` is better when higher: they say who judges, how, or what part."""
_REPEATS = word_set(
    """repetition repetitions trial trials epoch epochs repeat repeats run runs attempt attempts
    iteration iterations iter seed seeds rep reps replicate replication sample samples fold random
    try rollout rollouts"""
)
_PERSONS = word_set(
    """subject user respondent student worker annotator rater judge reviewer grader evaluator scorer
    expert author avaliador avaliadora evaluador evaluadora évaluateur valutatore bewerter juez
    juiz sujeto usuario encuestado teilnehmer teilnehmerin proband probandin nutzer
    utente soggetto sujeito usuário deelnemer участник участница испытуемый 参与者 参加者
    被験者 被试 참가자"""
)
_OF_PERSONS = ("particip", "partecip", "person")
_NO_FACTORS = _REPEATS | word_set(
    """date day time timestamp datetime hour started created updated hash checksum file filename
    path url index idx row line rank position place turn step round
    confidence metric metrics criterion dimension aspect winner preferred chosen best correct"""
)
"""Words of names whose values no experimenter sets, or that part what one answer is judged by."""
_RARELY_FACTORS = word_set("chunk page count length tokens")
"""Words of names whose values are rarely set, such as that of a chunk, unlike its size."""
_OF_ANSWERS: frozenset[Role] = ADDED.roles | word_set(
    """golden answer choices distractor context criterion id repetition score reason error
    stop_reason latency cost tokens started tools messages turn"""
)
_TABLE: dict[str, Meaning] = {}
for _role, _names in _WEAK.items():
    for _name in _names.split():
        _TABLE[_name.lower()] = Meaning(_role, weak=True)

for _role, _names in _EXACT.items():
    for _name in _names.split():
        if _name.lower() not in _TABLE or _role in ("question", "golden", "answer"):
            _TABLE[_name.lower()] = Meaning(_role)

for _role, _name in ADDED.names:
    _TABLE.setdefault(_name, Meaning(_role))

_TABLE["query"] = Meaning("question")
_WEAK_QUESTIONS = frozenset(_WEAK["question"].split())
_WEAK_GOLDEN = frozenset(_WEAK["golden"].split())
_USUAL = [*" ".join(_EXACT.values()).split(), *(name for _, name in ADDED.names)]
_PLACES = {name.lower(): place for place, name in enumerate(_USUAL)}
_MAY_DESCRIBE = word_set("keywords testlist must acceptable")  # the question, or a rule of any type
_STATED = word_set(_EXACT["criterion"]) - _MAY_DESCRIBE
_CALLS_FOR = _FORBIDS | word_set("expected expect must should required")
_BEFORE_FORBIDS = word_set("expect expected must should to")
_CONTAINS = word_set("contains contain")
_HOW_MANY = word_set("any all of one")
"""Words that say how many of several must hold."""
_FORBIDS_TERMS = word_set("negative excluded exclude contamination blacklist blacklisted")
"""Words that forbid what follows if these are terms."""
_BY_END = {
    "tool": word_set("tool tools"),
    "url": word_set("url urls"),
    "icontains": word_set(
        """keyword keywords phrase phrases term terms substring substrings contain contains mention
        mentions include includes"""
    ),
    "regex": word_set("regex regexp"),
    "judge": word_set("facts points behavior behaviour"),
}
"""Type of a criterion → last words of names that begin with a demand."""
_OF_CALLS = word_set("call calls called name names sequence sequences used chain order list")
"""Last words of names of the tools that are called: `expected_tool_sequence`."""
_CHOICE_STEMS = word_set(
    """choice choices option options opt op ans answer endings ending alternative alternatives
    candidate distractor a b c d e"""
)
_SPEAKERS = (
    *("role", "from", "speaker", "author", "sender", "actor", "direction"),
    *("remitente", "rol", "autor", "absender", "gonderen", "gönderen", "отправитель"),
    *("type", "name"),
)
_SAYS = (
    *("content", "value", "text", "message", "utterance", "body", "parts", "blocks"),
    *("texto", "mensaje", "mensagem", "contenido", "nachricht", "mesaj", "сообщение"),
    "data",  # an object with `content`, as LangChain writes messages
    "output",  # of Chainlit's steps
)
_USERS = word_set(
    """user human customer client usr patient seeker person student interviewee caller visitor
    guest member buyer shopper learner asker inbound incoming asr requester enduser usuario
    usuário cliente kunde kundin nutzer nutzerin benutzer utilisateur usager utente klient
    müşteri kullanıcı klant gebruiker kund användare bruger klientka użytkownik zákazník
    uživatel paciente patientin pelanggan pengguna kháchhàng khách ngườidùng пользователь клиент
    клиентка покупатель пациент клієнт користувач πελάτης χρήστης לקוח משתמש العميل عميل الزبون
    المستخدم مستخدم مشتری کاربر ग्राहक उपयोगकर्ता ลูกค้า ผู้ใช้ 用户 用戶 客户 客戶 顾客 顧客
    患者 病人 お客様 お客さま 利用者 ユーザー 사용자 고객 이용자"""
)
_ASSISTANTS = word_set(
    """assistant ai bot gpt agent model chatbot counselor therapist supporter doctor teacher
    operator support llm robot advisor nurse representative rep tutor consultant counsellor
    physician shop chatgpt receptionist outbound outgoing tts helpdesk copilot pharmacist
    asistente assistente agente atendente operador operadora consultor consultora conseiller
    conseillère operatore consulente assistent assistentin berater beraterin mitarbeiter
    mitarbeiterin asistan temsilci danışman medewerker adviseur handläggare rådgivare
    medarbejder asystent konsultant doradca asistent operátor asisten petugas nhânviên trợlý
    tưvấnviên ассистент бот оператор консультант менеджер помощник асистент βοηθός עוזר נציג
    المساعد مساعد الموظف موظف الوكيل البوت روبوت دستیار پشتیبان सहायक बॉट ผู้ช่วย พนักงาน
    เจ้าหน้าที่ 客服 助手 助理 坐席 医生 机器人 オペレーター アシスタント ボット 担当者 スタッフ
    店員 상담원 상담사 어시스턴트 챗봇 봇"""
)
NOT_SPEAKING = word_set(
    """system sys sistema sistem tool function developer action function_call observation tool_call
    tool_response"""
)
"""Who writes in a chat, and is neither the one who asks nor the one who answers."""
SPEAKING = _USERS | _ASSISTANTS | NOT_SPEAKING
_OF_SPEAKERS = (("id",), ("name",))  # what follows their key: `sender_id`
_LONGEST_NAME = 40  # of somebody who speaks


def joined(path: str) -> str:
    """The words of the last part of a path without what is between them: `final_answer` as
    `finalanswer`.
    """
    return "".join(words_of(last_part(path)))


def last_part(path: str) -> str:
    """The name of a column inside others: `inputs.question` is `question`."""
    return path.rpartition(".")[2]


@lru_cache(maxsize=10_000)
def meanings(path: str) -> tuple[Meaning, ...]:
    """Everything that a column's name can mean, the likeliest first; none if it says nothing."""
    whole = _joined(path)
    if "." in path and whole in ("inputvalue", "attributesinputvalue"):
        return (Meaning("question"),)
    if "." in path and whole in ("outputvalue", "attributesoutputvalue"):
        return (Meaning("answer"),)
    name = last_part(path)
    words = words_of(name)
    joined = "".join(words)
    found: list[Meaning] = []
    if name.startswith("__expected"):
        return (Meaning("criterion"),)
    if joined in _TABLE:
        found.append(_TABLE[joined])
    if joined in _WEAK_GOLDEN:
        found.append(Meaning("golden", weak=True))
    if joined in _WEAK_QUESTIONS:
        found.append(Meaning("question", weak=True))
    if not found:
        composed = _composed(words)
        if criterion_type(path) is not None:
            composed = Meaning("criterion")
        if composed is not None:
            found.append(composed)

    if not found and "." in path and criterion_type(path) is not None:
        found.append(Meaning("criterion"))

    if is_score_name(path):
        found.append(Meaning("score", weak=bool(found)))
    return tuple(dict.fromkeys(found))


def roles_of(*names: str) -> set[Role]:
    """What the names suggest, surely or not."""
    found = set()
    for name in names:
        for meaning in meanings(name):
            found.add(meaning.role)

    return found


def sure_roles(name: str) -> set[Role]:
    """What a name surely means."""
    return {meaning.role for meaning in meanings(name) if not meaning.weak}


def with_role(columns: Iterable[str], *roles: Role) -> list[str]:
    """The columns that surely have a role by their names: role by role, usual names first."""
    found = []
    for role in roles:
        of_role = [path for path in columns if Meaning(role) in meanings(path)]
        found += sorted(
            of_role,
            key=lambda path: _PLACES.get(_joined(last_part(path)), len(_PLACES)),
        )

    return found


_ASSERTED = word_set("expect expected expects expectation expectations assert asserts assertions")


def criterion_type(path: str) -> str | None:
    """The type of a text in a column of criteria, by its name; None: its name says none.

    >>> criterion_type("must_not_mention"), criterion_type("expectedTools"), criterion_type("topic")
    ('not-icontains', 'tool', None)
    >>> criterion_type("expected.forbidden_contains")
    'not-icontains'
    """
    words = _demand_first(words_of(last_part(path)))
    above = words_of(last_part(path.rpartition(".")[0]))
    if above and above[-1] in _ASSERTED:  # `expect: {contains: …, not_contains: …}`
        words = ("expect", *words)
    alternatives = "any" in words
    words = tuple(word for word in words if word not in _HOW_MANY)
    if not words:
        return None
    if "".join(words) in _STATED:
        return "url" if words[-1] in ("url", "urls") else "judge"
    plain = next((kind for kind, ends in _BY_END.items() if words[-1] in ends), None)
    if words[-1] in _OF_CALLS and {*words[-3:-1]} & {"tool", "tools"}:
        plain = "tool"
    known = {*words}
    demands = words[0] in _CALLS_FOR or (len(words) > 1 and words[-1] in _CONTAINS)
    demands = demands or (plain == "icontains" and "must" in words)  # `reply_must_include`
    denied = bool(known & _DENIES) and (demands or bool(known & _CALLS_FOR))
    # the word after `expect` or `must`, too: `expected: {forbidden_contains: …}`
    if words[0] in _BEFORE_FORBIDS and len(words) > 1:
        first = words[1]
    else:
        first = words[0]

    advised = len(words) > 1 and (words[0] == "never" or (words[0] == "not" and plain is not None))
    faulty = words[0] in _FAULTY and words[-1] in _STATEMENTS
    bad = faulty or words[-1] in _MISTAKES or words[-2:] in _FAILS
    forbids = first in _FORBIDS or denied or advised or bad
    if plain == "icontains" and words[0] in _FORBIDS_TERMS:
        forbids = demands = True
    if forbids:
        measured = words[-1] in _ENDS_OF_IDS | _ABOUT_IT
        if measured:
            return None
        return f"not-{plain or 'judge'}"

    if plain == "icontains" and names_documents(path):
        return None  # words of an address, which no answer needs
    if alternatives and plain == "icontains":
        plain = "icontains-any"
    required = words[0] == "required" and words[-1] in _REQUIRED
    stated = words[0] in _OF_ANSWERS_ONLY and (plain == "icontains" or words[-1] in _MADE_OF)
    stated = stated and known.isdisjoint(_OF_OTHERS)
    ruled = words[0] in _JUDGING and words[-1] in _RULES
    ruled = ruled or (words[0] in ("criterion", "criteria") and words[-1] in _JUDGING)
    if len(words) > 1 and (required or stated or ruled):
        return plain or "judge"
    return plain if demands else None


def _joined(path: str) -> str:
    return "".join(words_of(path))


def _demand_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of `tools_expected` and `tools_expected_here` as those of `expected_tools`, and
    those of `article_no` as `article_number`.
    """
    if len(words) > 2 and words[-1] == "no":
        words = (*words[:-1], "number")
    if len(words) > 1 and words[-1] == "expected":
        return (words[-1], *words[:-1])
    if words[1:2] == ("expected",) and words[0] in _WHAT_IS_EXPECTED:
        return (words[1], words[0], *words[2:])
    return words


def _composed(words: tuple[str, ...]) -> Meaning | None:
    """The meaning of a name of several words that no table has."""
    words = _demand_first(words)
    if not words or words[0] in ("not", "non", "no", "incorrect", "wrong"):
        return None
    if words[-1] in _ENDS_OF_IDS | _OF_NUMBERS:
        measured = {"score", "length", "count"} | _OF_NUMBERS
        marked = words[0] in _DEMANDS or (words[0] in _RIGHT_ONES and words[-1] in _DOCUMENTS)
        is_rule = marked and words[-1] not in measured
        return Meaning("criterion") if is_rule else _identifier(words)

    known = frozenset(words)
    gold, agent = known & _GOLD, known & _AGENT
    if known & {"prompt", "message"}:
        agent -= {"system"}
    if gold and agent:
        return None
    if gold:
        return _of_gold(words, known)
    if agent:
        return _of_agent(words, known)
    if known & {"orig", "original"} and known & {"answer", "answers", "response"}:
        return Meaning("golden")
    wanted = words[0] in ("target", "training") and len(words) > 1
    targeted = wanted and SAID.issuperset(words[1:])
    if targeted or (words[0] == "true" and known & SAID):
        return Meaning("golden")
    if len(words) == 2 and words[0] in _ASKERS and words[1] in _ASKED_BY_PEOPLE:
        return Meaning("question")
    if len(words) > 1 and (words[0] in _DEMANDS or words[-1] in _CONTAINS):
        return Meaning("criterion")
    return _by_its_end(words)


def _of_gold(words: tuple[str, ...], known: frozenset[str]) -> Meaning | None:
    rest = known - SAID - _GOLD - _FILLERS - _GOLD_ADJECTIVES
    if known & SAID and not rest:
        return Meaning("golden")
    if not rest and len(known) > 1 and words[-1] in _GOLD:
        return Meaning("golden")
    names_the_author = words[0] in ("gold", "golden") and words[-1] in _MADE_BY
    if words[0] in _DEMANDS and len(words) > 1 and not names_the_author:
        return Meaning("criterion")
    return None


def _of_agent(words: tuple[str, ...], known: frozenset[str]) -> Meaning | None:
    rest = known - SAID - _AGENT - _FILLERS
    spoken = words[-1] in ("answer", "response", "output", "reply", "completion")
    if (known & SAID and not rest) or (spoken and len(words) < 5):
        return Meaning("answer")
    if words[0] in ("predicted", "pred", "generated") and len(words) == 2:
        return Meaning("answer")
    if words[-1] in ("actual", "predicted", "prediction"):
        return Meaning("answer")
    return None


def _by_its_end(words: tuple[str, ...]) -> Meaning | None:
    """`short_answer` may be a golden answer, `answer_start` is none."""
    if (
        words[-1] in ("name", "version")
        and words[:-1]
        and "condition" in sure_roles("_".join(words[:-1]))
    ):
        return Meaning("condition")

    if {*words} & _TIMES and {*words} <= _TIMES | _TIMED | _UNITS:
        return Meaning("latency")
    if words[-1] in ("answer", "answers", "output", "response") and len(words) == 2:
        return None if is_measure(words[:1]) else Meaning("golden", weak=True)
    if len(words) == 2 and words[0] == "answer" and words[1] in _OF_AN_ANSWER:
        return Meaning("golden", weak=True)
    asks = {"question", "query", "prompt"} & {*words}
    if asks and not _ABOUT_IT & {*words}:
        return Meaning("question", weak=True)
    return None


def _identifier(words: tuple[str, ...]) -> Meaning | None:
    if words[-1] in ("id", "uuid") and len(words) == 2:
        if "condition" in sure_roles(words[0]):
            return Meaning("condition")
        if words[0] in ADDED.before_id:
            return Meaning(ADDED.before_id[words[0]])
        return Meaning("id", weak=True)

    return None


def is_gold(words: Collection[str]) -> bool:
    """Whether words of a name say that it holds what is right."""
    return bool(_GOLD & {*words})


def names_documents(path: str) -> bool:
    """Whether a name is of what an answer is found in, or of its id.

    >>> names_documents("expected_doc"), names_documents("relevantIds"), names_documents("answer")
    (True, True, False)
    """
    words = _demand_first(words_of(last_part(path)))
    if len(words) > 1 and words[-1] in _BY_END["icontains"]:  # `expected_url_keywords`
        words = words[:-1]
    return bool(words) and words[-1] in _DOCUMENTS


def is_score_name(path: str) -> bool:
    """Whether a name has a word of judgement, and none that says how hard a question is."""
    name = last_part(path)
    words = words_of(name)
    if len(words) > 1 and words[-1] == "flag":
        words = words[:-1]
    rated = words[-2:] in _SCALES and not any(map(str.isdecimal, words[-3:-2]))  # `gpt-3.0_1`
    rated = rated and not name.endswith(tuple(f"{mark}{words[-1]}" for mark in ".\u2024"))
    if rated:
        words = words[:-2]
    known = {*words}
    others = _OF_PROGRAMS | _NO_SCORE | {"valid"}
    good = words[:1] == ("is",) and known & _QUALITY and not known & others
    if good or "".join(words) in _QUALITIES_OF_ANSWERS:
        return True
    if rated and words and not known & ((_NO_SCORE - {"quality"}) | (_MEASURES - {"total"})):
        return True
    if not words or words == ("hits",) or words[0] in _DERIVED:  # `hits` is a count
        return False
    if words[-1] == "ok" and len(words) > 1:
        return not known & _OF_PROGRAMS
    found = known & _OF_RETRIEVAL and {*words[-1:]} & _FOUND  # how well, and no similarity
    judged = {"quality"} if words[-2:] == ("quality", "score") else set[str]()
    if known & (_NO_SCORE - (_OF_RETRIEVAL if found else judged)):
        return False
    if words[0] in ("top", "best") and words[-1] in ("score", "similarity"):
        return False  # of what was retrieved
    if "".join(words) in _SCORES or words[-1] in _SCORE_ENDS or words[-1] in _QUALITIES:
        return not (words[-1] == "em" and len(words) > 2)
    if known & _MEASURES:
        return False
    if known & _FAULTS or words[-1] in _OPPOSITES:
        return words[-1] not in _SORTS
    numbered = len(words) > 1 and words[-1].isdecimal()
    at_a_rank = numbered and "".join(words[:-1]) in _SCORES | _RATERS
    return at_a_rank or "@" in name or (words[0] in _SCORE_STARTS | _QUALITIES and len(known) < 4)


def holds_scores(path: str) -> bool:
    """Whether a column is inside an object of scores, and its own name does not say otherwise.

    >>> holds_scores("judge.tone"), holds_scores("metrics.latency_ms"), holds_scores("tone")
    (True, False, False)
    """
    *above, name = path.split(".")
    if name in ("score", "value"):  # of an object such as `metrics.tone`
        above = above[:-1] if len(above) > 1 else above
    words = {*words_of(name)}
    if words and all(map(str.isdecimal, words)):
        return False  # numbers of things that an answer rates, and no metrics
    holder = {*words_of(above[-1])} if above else set()
    if not _SCORE_HOLDERS & holder or _MEASURES & holder:  # `judge_tokens.input`
        return False
    return not words & (_MEASURES | (_NO_SCORE - {"quality"}))


def tells_of_answers(path: str) -> bool:
    """Whether a name surely has a role that tells something of an answer."""
    roles = sure_roles(path)
    return bool(roles - {"metadata", "context", "cluster"})


def names_persons(path: str) -> bool:
    """Whether a name is of those who answered or judged."""
    words = words_of(last_part(path))
    return any(word in _PERSONS or word.startswith(_OF_PERSONS) for word in words)


def repeats(name: str) -> bool:
    """Whether a name or a value has a word for one of several repetitions: `run_2`."""
    return bool(_REPEATS & {*words_of(name)})


def may_be_factor(path: str, *, rarely: bool = False) -> bool:
    """Whether the name of a column leaves open that an experimenter set its values: it is not of
    a repetition, a person, a time or a place, and of nothing that is said of an answer.

    `rarely`: also for names of what is rarely set.
    """
    words = {*words_of(last_part(path))}
    if words & _NO_FACTORS or names_persons(path):
        return False
    if words & _RARELY_FACTORS and not rarely:
        return False
    if side_of(last_part(path)) == "assistant":
        return True
    return not _OF_ANSWERS & roles_of(path)


def is_measure(words: Collection[str]) -> bool:
    """Whether words of a name say that it holds what is counted or measured, and judges nothing."""
    return bool(_MEASURES & {*words})


def lower_is_better(path: str) -> bool | None:
    """Whether less is better, by closed lists of words; None: the name does not say.

    >>> lower_is_better("incompleteness"), lower_is_better("exact_match"), lower_is_better("length")
    (True, False, None)
    """
    words = []
    for word in words_of(last_part(path)):
        if not word.isdecimal():
            words.append(word)

    known = {*words}
    bad = bool(_BAD & known)
    negated = words[:1] in (["non"], ["not"])  # `non_compliant`
    if bad or negated:
        return not (bad and _TURNS_ROUND & known)
    if known & {"flag", "flags"} and known <= _ALARMS:
        return True
    usual = "".join(words) in _SCORES or bool(_GOOD & known)
    if usual or (_SCORED & known and known <= _OF_ANY_SCORE):
        return False
    return None


def is_success_only(path: str) -> bool:
    """Whether a name speaks of a score or a success, and not of what was good about it: beside an
    attack, it may be the attack's.
    """
    return {*words_of(last_part(path))} <= _OF_SUCCESS


def is_score_of_bad(path: str) -> bool:
    """Whether a name is of a score for something bad, of which more may be better or worse:
    `latency_score`, `hallucination_rating`.
    """
    words = {*words_of(last_part(path))}
    return bool(words & _BAD) and bool(words & _SCORED) and not words & _TURNS_ROUND


def side_of(speaker: str) -> Literal["user", "assistant"] | None:
    """Who speaks in a chat: the one who asks, or the one who answers; None: neither, or unknown."""
    words = re.sub(r"[\s_#-]*\d{1,3}$|_message$", "", speaker.strip().lower()).split()
    if not words or len(words) > 3:
        return None
    said = {words[-1], "".join(words)}
    if said & _USERS:
        return "user"
    if said & _ASSISTANTS:
        return "assistant"
    return None


_FLAGGED = word_set("is from by sent was eh é es est ist e")


def side_of_flag(path: str) -> Literal["user", "assistant"] | None:
    """Whose messages are marked where a column of this name is true; None: it asks for no side.

    >>> side_of_flag("isBot"), side_of_flag("from_me"), side_of_flag("is_final")
    ('assistant', 'user', None)
    """
    words = []
    for word in words_of(last_part(path)):
        if word not in _FLAGGED:
            words.append(word)

    if len(words) != 1:
        return None
    return side_of("user" if words[0] == "me" else words[0])


def who_speaks(value: object) -> str | None:
    """The speaker that a cell names: a text, or an object with a side, a flag or a name.

    >>> (
    ...     who_speaks({"type": "agent_bot", "name": "Ada"}),
    ...     who_speaks({"name": "Ada", "isBot": False}),
    ... )
    ('assistant', 'Ada')
    >>> who_speaks({"user": None, "application": {"id": 7}}), who_speaks({"isBot": False})
    ('assistant', 'user')
    """
    if not isinstance(value, Mapping):
        return None if value is None else str(value)
    other = None  # for whom no name tells
    for key, inside in value.items():
        side = side_of_flag(key)
        if inside is True and side is not None:
            return side
        if inside is False and side is not None:
            other = "user" if side == "assistant" else "assistant"
        if isinstance(inside, str) and "_".join(words_of(key)) in _SIDE_IN:
            side = side_of(" ".join(words_of(inside)))
            if side is not None:
                return side

        if isinstance(inside, Mapping) and inside:
            side = "assistant" if key in ("application", "app") else side_of(key)
            if side is not None:
                return side

    named = [inside for key, inside in value.items() if words_of(key)[-1:] == ("name",)]
    named += [value.get("id")]
    return next((str(name) for name in named if isinstance(name, (str, int)) and name), other)


_SIDE_IN = ("role", "type", "kind", "sender_type", "author_type")


def ends_with_reply(messages: Sequence[object]) -> bool:
    """Whether the assistant's message is the last of a chat, after others."""
    return len(messages) > 1 and whose(messages[-1]) == "assistant"


def whose(message: object) -> Literal["user", "assistant"] | None:
    """Who says a chat message; None: neither, or it is none."""
    keys = speaker_and_text(message)
    if keys is None or not isinstance(message, dict):
        return None
    return side_of(message[keys[0]])


def is_choice_stem(stem: str) -> bool:
    """Whether columns that differ by a running letter or number after this are choices."""
    return "".join(words_of(stem)) in _CHOICE_STEMS


def speaker_and_text(message: object) -> tuple[str, str] | None:
    """The keys of a chat message that say who speaks, and what; None: it is no message."""
    if not isinstance(message, dict):
        return None
    for speaker in _SPEAKERS:
        who = message.get(speaker)
        if isinstance(who, str) and (who.strip().lower() in SPEAKING or side_of(who) is not None):
            return _with_text(message, speaker)

    return None


def any_speaker_and_text(message: object) -> tuple[str, str] | None:
    """The same of a message in which anybody speaks, under a key that says so; None: it is none."""
    if not isinstance(message, dict):
        return None
    ids = [key for key in message if words_of(key)[1:] in _OF_SPEAKERS]
    ids = [key for key in ids if words_of(key)[0] in _SPEAKERS[:-2]]
    for speaker in (*_SPEAKERS[:-2], *ids):
        who = message.get(speaker)
        if isinstance(who, str) and 0 < len(who.strip()) <= _LONGEST_NAME:
            return _with_text(message, speaker)

    return None


def _with_text(message: Mapping[str, object], speaker: str) -> tuple[str, str] | None:
    said = next((key for key in _SAYS if key in message and key != speaker), None)
    return None if said is None else (speaker, said)
