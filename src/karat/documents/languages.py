"""What words in names of columns are in English, the language in which `names` knows meanings."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(
    r"[A-ZÀ-Þ]+(?![a-zß-ɏḀ-ỿ])|[A-ZÀ-Þ]?[a-zß-ɏḀ-ỿ]+|\d+|(?:[^\W\d_a-zA-ZÀ-ɏḀ-ỿ]|[\u0900-\u0dff\u0e31-\u0e4e])+"
)
"""Signs of vowels in India and Thailand are no letters to Python, but parts of words."""
_IN_OTHER_LANGUAGES = {
    "question": """pergunta questão questao pregunta enunciado frage domanda quesito vraag
        fråga вопрос питання soru pytanie otázka întrebare ερώτηση pertanyaan câuhỏi cauhoi 问题
        問題
        题目 提问 質問 질문 질의 문제 문항 سؤال السؤال سوال प्रश्न คำถาม שאלה fragestellung""",
    "query": "consulta requête anfrage sorgu запрос zapytanie 查询",
    "answer": """resposta respuesta antwort antworten reponse réponse risposta antwoord svar ответ
        ответы відповідь cevap cevabı cevabi yanıt yanit yanıtı yaniti odpowiedź odpowiedz odpověď
        răspuns raspuns απάντηση jawaban trảlời traloi câutrảlời cautraloi 答案 回答 答え 답변 대답
        응답 답 回复 应答 جواب إجابة الإجابة اجابة الاجابة پاسخ उत्तर जवाब คำตอบ תשובה""",
    "description": "descripcion descripción descricao descrição beschreibung описание 描述",
    "output": """saída saida salida sortie ausgabe вывод çıktı cikti 输出 出力 출력 输出结果
        评审结果 判断结果
        识别结果 分类结果 出力結果 분류결과""",
    "criterion": """criterio critério critère kriterium kriterien
        rúbrica rubrica rubrik rubrique barème erwartungshorizont bewertungskriterien
        bewertungskriterium bewertungsmaßstab критерий критерии критерия критериев рубрика kriter
        kriterler kriteria 评分标准 评分细则 评分要点 评判标准 评估标准 评价标准
        评测标准 验收标准 得分点 採点基準 評価基準 判定基準 채점기준
        평가기준 معيار معايير المعايير""",
    "keypoints": "要点 关键点 关键要点 关键事实",
    "facts": "hechos fatos faits fakten fatti факты 事实 事実 사실",
    "topics": "temas themen sujets temi темы 主题",
    "behavior": "comportamiento comportamento verhalten comportement поведение davranış 行为 行動",
    "refuse": """rechazar recusar ablehnen refuser rifiutare отказать отказаться 拒答 拒绝 回答拒否
        거절""",
    "abstain": "abstenerse abster astenersi воздержаться",
    "answerable": "respondible respondível beantwortbar répondable 可回答 回答可能 답변가능",
    "unanswerable": "不可回答 无法回答 unbeantwortbar",
    "expected": """esperada esperado espera attendue attendu erwartet erwartete erwarteter attesa
        atteso verwacht verwachte ожидаемый ожидаемая ожидаемое очікувана diharapkan mongđợi mongdoi
        beklenen oczekiwana oczekiwany očekávaná 期望 预期 期待 期待される 想定 기대 예상
        المتوقعة متوقعة""",
    "correct": """correcta correcto correta correto corretta corretto correcte korrekt korrekte
        richtig richtige juist juiste правильный правильная правильно верно benar doğru dogru
        prawidłowa poprawna poprawne správná đúng 正确 正確 正しい 올바른 정확 الصحيحة صحيح सही""",
    "reference": """referencia referência referenz référence riferimento referentie эталонный эталон
        эталонная еталонна referans referensi rujukan wzorcowa wzorcowy wzorcowe vzorová
        mẫu chuẩn chuan 参考 标准 標準 参照 模範 모범 참조
        참고 المرجع مرجعية مرجع""",
    "groundtruth": """musterlösung musterloesung musterantwort sollantwort referenzantwort
        goldantwort gabarito đápán dapan 标准答案 参考答案 预期答案 期望答案 正确答案 模範解答
        正解 정답 金标准 모범답안 kuncijawaban kunci""",
    "ideal": "idéal idéale ideale ідеальна идеальный идеальная 理想",
    "truth": "verdade verdad verité vérité wahrheit verità waarheid",
    "solution": "lösung loesung solución solucion solução solucao soluzione oplossing çözüm 解答",
    "model": """modelo modell modèle modele modello модели модель моделі modeli modelu
        môhình mohinh 模型 モデル 모델 النموذج نموذج مدل मॉडल""",
    "system": "sistema sistem sistemi système системы система systeem 系统 システム 시스템",
    "chatbot": "bots bota chatbota бота бот чатбота 聊天机器人 机器人 チャットボット 챗봇",
    "ai": "ia ki ии 人工智能 الذكاء yapayzeka",
    "generated": """generada generado gerada gerado générée généré generee genere generata
        generato generierte generiert gegenereerd üretilen uretilen сгенерированный
        сгенерированный_ответ wygenerowana dihasilkan 生成 生成された 생성 생성된 المولدة
        obtenida obtenido
        obtida obtido obtenue obtenu ottenuta ottenuto erhaltene tatsächliche полученный
        полученная 实际 実際 실제""",
    "prediction": """modellantwort vorhersage prédiction predicción prediccion predição predicao
        previsão previsao predizione previsione tahmin prediksi предсказание прогноз 预测 予測
        예측""",
    "score": """оценка оценки оцінка puntuación puntuacion pontuação pontuacao calificación
        calificacion puntaje valutazione punteggio punteggi bewertung punktzahl ocena skor
        skoru nilai 评分 得分 分数 打分 評価 点数 得点 スコア 점수 평가 الدرجة درجة امتیاز نمره
        अंक คะแนน балл""",
    "grade": "nota voto",
    "points": "punkte puntos pontos punti баллы puan puanı điểm diem",
    "iscorrect": "acertou acierto acerto 是否正确 正誤 正误 完全匹配 完全一致",
    "precision": "precisión precisao precisão",
    "accuracy": """acurácia acuracia exactitud exactitude genauigkeit accuratezza
        doğruluk dogruluk akurasi точность 准确率 准确性 准确度 正確性 정확도 정확성""",
    "relevance": """relevancia relevância pertinence rilevanza relevanz alaka relevansi
        релевантность 相关性 関連性 관련성""",
    "faithfulness": """fidelidad fidelidade fidélité fedeltà sadakat достоверность 忠实度 忠实性
        忠実性 충실도""",
    "similarity": """similitud similaridade similitude similarità ähnlichkeit benzerlik kemiripan
        сходство 相似度 類似度 유사도""",
    "completeness": "completitud completude vollständigkeit полнота 完整性 完全性 완전성",
    "coherence": "coherencia coerência coerencia cohérence coerenza kohärenz связность 连贯性",
    "hallucination": "alucinación alucinacion alucinação alucinacao halüsinasyon галлюцинация 幻觉",
    "context": """contexto contexte contesto kontext контекст bağlam baglam konteks
        ngữcảnh ngucanh 上下文 コンテキスト 文脈 문맥 컨텍스트 السياق زمینه""",
    "error": "erro erreur fehler errore hata ошибка помилка błąd kesalahan 错误 エラー 오류 خطأ",
    "explanation": """explicación explicacion explicação explicacao justificativa justificación
        justificacion spiegazione erklärung begründung пояснение обоснование açıklama aciklama
        penjelasan giảithích 说明 解释 理由 설명 이유""",
    "comment": "comentario comentário commentaire kommentar commento комментарий yorum komentar",
    "options": "opciones opções opcoes optionen opzioni варианты seçenekler 选项 選択肢 보기",
    "option": "opción opcion opção opcao opzione optie opcja вариант seçenek pilihan lựachọn",
    "alternatives": "alternativas alternativen",
    "text": "texto texte testo tekst текст teks metin 文本 テキスト 텍스트 نص 文案 文",
    "label": "rótulo rotulo etiqueta étiquette etichetta etiket метка 标签 ラベル 라벨",
    "category": """categoria categoría kategorie catégorie категория категорія kategori categorie
        kategoria danhmục 类别 分类 分類 カテゴリ 카테고리 분류 범주 الفئة""",
    "type": "tipo tür tipi тип jenis loại 类型 種類 유형",
    "number": "numero número nummer номер",
    "id": "编号 序号 番号 번호 معرف",
    "result": "结果 結果 결과",
    "input": "输入 入力 입력 entrada eingabe entrée masukan girdi",
    "test": "测试 テスト 테스트",
    "difficulty": "难度 難易度 난이도",
    "notes": "备注 備考 비고",
    "latency": """laufzeit antwortzeit latencia latência latence latenz latenza gecikme latensi
        задержка 延迟""",
    "time": "tiempo tempo temps zeit время süre waktu czas 耗时 时间 時間 시간",
    "seconds": "segundos secondes sekunden secondi saniye detik секунды 秒",
    "message": """msg mes mensaje mensagem nachricht mesaj messaggio bericht wiadomość сообщение
        الرسالة رسالة tinnhắn tinnhan pesan 消息 메시지""",
    "messages": """mensagens mensajes nachrichten mesajlar messaggi messagi сообщения الرسائل
        メッセージ 메시지들""",
    "content": """contenido conteúdo conteudo contenuto inhalt contenu содержание içerik
        nộidung noidung
        المحتوى 内容 내용""",
    "role": "rol rolle rôle ruolo роль 角色 役割 역할",
    "speaker": """sprecher hablante falante locuteur parlante konuşmacı spreker говорящий
        ngườinói nguoinoi
        المتحدث 说话人 話者 発言者 발화자 화자""",
    "utterance": """发言 発話 発言 발화 propos äußerung""",
    "history": "historial histórico verlauf historique история",
    "dialogue": """conversa conversación conversacion gespräch konversation diálogo dialogo диалог
        rozmowa görüşme konuşma percakapan hộithoại hoithoai entretien المحادثة محادثة 对话 会话
        会話 対話 대화""",
    "sender": """remitente absender gonderen gönderen отправитель emisor expéditeur mittente
        المرسل 发送者 送信者""",
    "phone": "telefone teléfono telefono telefon телефон điệnthoại 电话 電話 전화 الهاتف",
    "user": "nutzers klienta użytkownika клиента пользователя клієнта 用户 用戶 ユーザー 사용자",
    "group": "grupo gruppe groupe gruppo groep группа 组别 組 组 그룹",
    "condition": """condición condicion condição condicao bedingung condizione conditie условие
        条件 조건 kondisi koşul 実験条件 实验条件""",
    "treatment": "tratamiento tratamento traitement trattamento",
    "must": "deve devem debe deben doit doivent muss soll moet должен musi 必须 应",
    "contain": """conter contém contener contiene contenir contient contenere enthalten enthält
        bevatten содержать 包含""",
    "mention": """mencionar incluir mentionner inclure erwähnen menzionare includere noemen
        упоминать 提及""",
    "not": "nao não nicht niet keine kein не 不",
    "forbidden": """proibido proibida prohibido prohibida interdit interdite verboten verbotene
        vietato vietata verboden запрещенные запрещённые 禁止 禁用""",
    "avoid": "evitar éviter vermeiden evitare",
    "sentence": "frase satz предложение 句子",
    "source": "kaynak fuente fonte quelle источник 来源 出典",
    "document": "documento dokument belge документ 文档 文書",
    "intent": "intención intencion intenção intencao absicht 意图",
    "keywords": """palavraschave palabrasclave motsclés motscles schlüsselwörter stichwörter 关键词
        キーワード 키워드""",
    "prompt": "提示词 プロンプト 프롬프트 промпт istem",
    "name": "名称 名 명 이름 nombre nome nom название nama adı",
    "modelname": "modellname",
    "method": "方法 方式 手法 방법 método metodo methode méthode метод metode yöntem",
    "strategy": """策略 戦略 전략 estrategia estratégia strategie stratégie стратегия strategi
        strateji""",
    "config": """配置 設定 설정 configuración configuracion configuração configuracao konfiguration
        konfigurasi конфигурация""",
    "version": "版本 バージョン 버전 versión versão версия sürüm",
    "match": "匹配 一致 是否匹配 是否一致 일치",
    "human": "人工",
    "overall": "综合 総合 종합",
    "correctness": "правильность",
    "evaluation": """évaluation evaluación evaluacion avaliação avaliacao değerlendirme 评估 評估
        評価結果""",
    "quality": """calidad qualidade qualité qualità qualität kwaliteit jakość качество kalite
        质量 品質 품질""",
    "verdict": "esito veredicto veredito verdetto urteil вердикт 判定 判断 판정",
    "clarity": "claridad clareza clarté chiarezza klarheit ясность 清晰度 명확성",
    "fluency": "fluidez fluidité fluidità 流畅性 流畅度 流暢さ 유창성",
    "true": "真实",
    "": """del della dello de do da du des der von vom por par le la el les của cua 是否 的 の
        された""",
}
"""A word that says nothing is left out, unless it ends a name, as in `text_de`."""
_YES = """sí si sim oui ja evet да так tak ano có ya 是 对 はい 네 예 نعم हाँ goed juist rätt giusto
    vrai vero verdadero verdadeiro wahr richtig верно правильно doğru benar đúng 正确"""
_NO = """não nao non nein nee hayır hayir нет ні nie ne không tidak 否 いいえ 아니요 아니오 لا
    नहीं fout onjuist sbagliato faux falso falsch неверно неправильно yanlış salah sai
    错误 不正确"""
_CORRECT = "correcto correcta correto corretto korrekt 正解 정답 통과 通过 通過"
_INCORRECT = """incorrecto incorrecta incorreto inkorrekt errado 不正解 오답 불통과 不通过 未通过
    不通過 未通過"""
YES_OR_NO = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}
"""What people write in a cell for yes and no, true and false."""
VERDICTS = {**dict.fromkeys(_CORRECT.split(), True), **dict.fromkeys(_INCORRECT.split(), False)}
"""What they write of answers, and of nothing else."""
_SPACED = (
    ("mong", "đợi"),
    ("mong", "doi"),
    ("lựa", "chọn"),
    ("câu", "hỏi"),
    ("cau", "hoi"),
    ("trả", "lời"),
    ("tra", "loi"),
    ("câu", "trảlời"),
    ("cau", "traloi"),
    ("đáp", "án"),
    ("dap", "an"),
    ("hội", "thoại"),
    ("hoi", "thoai"),
    ("người", "nói"),
    ("nguoi", "noi"),
    ("nội", "dung"),
    ("noi", "dung"),
    ("tin", "nhắn"),
    ("tin", "nhan"),
    ("mô", "hình"),
    ("mo", "hinh"),
    ("ngữ", "cảnh"),
    ("yapay", "zeka"),
    ("palavras", "chave"),
    ("palabras", "clave"),
    ("mots", "clés"),
    ("mots", "cles"),
)
"""Two words that are one there."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
"""Japanese, Chinese and Korean, whose words follow each other without spaces."""


_ENGLISH = {}
for _english, _words in _IN_OTHER_LANGUAGES.items():
    for _word in _words.split():
        _ENGLISH[_word] = _english

_LONGEST = max(len(word) for word in _ENGLISH if _UNSPACED.fullmatch(word))


def english_words(name: str) -> list[str]:
    """The words of a name in lower case, in English as far as they are known.

    >>> english_words("Respuesta del chatbot"), english_words("模型的回答")
    (['answer', 'chatbot'], ['model', 'answer'])
    """
    words: list[str] = []
    for found in _WORDS.findall(unicodedata.normalize("NFC", name)):
        for word in _parts(found.lower()):
            words.append(word)
            while tuple(words[-2:]) in _SPACED:
                words[-2:] = ["".join(words[-2:])]

    last = len(words) - 1
    said = []
    for at, word in enumerate(words):
        if at == last or _ENGLISH.get(word) != "":
            said.append(word)

    return [in_english(word) for word in said]


def in_english(word: str) -> str:
    """The English word for one in lower case; the word itself if none is known."""
    return _ENGLISH.get(word) or _ENGLISH.get(word.removesuffix("s")) or word


def _parts(word: str) -> list[str]:
    """The known words that one without spaces consists of; itself, if a part is not known."""
    if word in _ENGLISH or not _UNSPACED.fullmatch(word):
        return [word]
    parts: list[str] = []
    start = 0
    while start < len(word):
        ends = range(min(len(word), start + _LONGEST), start, -1)
        part = next((word[start:end] for end in ends if word[start:end] in _ENGLISH), None)
        if part is None:  # a name that is not known, as of a model, and what is its own
            for end in range(1, len(word) - 1):
                if _ENGLISH.get(word[end:]) in _AFTER_A_NAME:
                    return [word[:end], word[end:]]

            return [word]

        parts.append(part)
        start += len(part)

    return parts


_AFTER_A_NAME = frozenset({"answer", "score", "output", "result", "verdict"})
