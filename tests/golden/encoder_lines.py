"""10,000 difficult lines for tokenizers. They are the same every time: encoder_tokens.py and
tests/tools/tokenizer/encoder_tokens_test.py generate them from one seed."""

COUNT = 10000

SENTENCES = """All human beings are born free and equal in dignity and rights. They are endowed with reason \
and conscience and should act towards one another in a spirit of brotherhood.
Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt \
und sollen einander im Geist der Brüderlichkeit begegnen.
Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de \
conscience et doivent agir les uns envers les autres dans un esprit de fraternité.
Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y \
conciencia, deben comportarse fraternalmente los unos con los otros.
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul'da ışık.
Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ΣΊΣΥΦΟΣ
יולד כל אדם חופשי ושווה בערכו ובזכויותיו. בְּרֵאשִׁית
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。ｶﾞｷﾞ
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
ყველა ადამიანი იბადება თავისუფალი. Ամեն մարդ ծնվում է ազատ։ எல்லா மனிதர்களும் சுதந்திரமாகவே பிறக்கின்றனர்
the ship sails where the hold lies before the word, and the words of the ship are what the ship says; 1234 \
1250 3.14 don't I'll we've if(x==1){return a[0];}//c""".split("\n")
WORDS = [word for sentence in SENTENCES for word in sentence.split(" ")]

SPACES = [
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\v",
    "\f",
    "\x1c",
    "\x1f",
    "\x85",
    "\xa0",
    "\u1680",
    "\u180e",
    "\u2000",
    "\u2003",
    "\u2009",
    "\u200a",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u205f",
    "\u3000",
]
INVISIBLE = [
    "\u200b",
    "\u200c",
    "\u200d",
    "\u200e",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u3164",
    "\ufe0f",
    "\ufe0e",
    "\U000e0001",
    "\U000e0067",
    "\U000e0100",
    "\u202e",
    "\u2066",
]
CONTROLS = [
    "\x00",
    "\x01",
    "\x07",
    "\x08",
    "\x1b",
    "\x7f",
    "\x80",
    "\x8f",
    "\x9f",
    "\ufffd",
    "\ufffe",
    "\uffff",
    "\ufdd0",
    "\U0001fffe",
    "\U0010ffff",
    "\ue000",
    "\U000f0000",
    "\ufff9",
    "\ufffc",
]
EMOJI = [
    "🙂",
    "👍🏽",
    "👩\u200d👩\u200d👧",
    "\U0001f1e9\U0001f1ea",
    "\U0001f1e9",
    "1\ufe0f\u20e3",
    "❤\ufe0f",
    "☺",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "👨🏿\u200d🚀",
    "🏽",
    "©",
    "™",
]
MARKS = [
    "\u0301",
    "\u0308",
    "\u0323",
    "\u0327",
    "\u0338",
    "\u0345",
    "\u05b0",
    "\u064b",
    "\u0670",
    "\u093c",
    "\u094d",
    "\u0e31",
    "\u0f71",
    "\u302a",
    "\u3099",
    "\u309a",
    "\u20dd",
    "\u1abf",
    "\u1ac0",
    "\u1df7",
    "\u08d4",
    "\u08d3",
    "\u1734",
    "\u1cf2",
    "\U0001e008",
    "\U0001d165",
]
FORMS = [
    "ﬁ",
    "ﬀﬃ",
    "½",
    "Ⅷ",
    "㎏",
    "ｱﾞ",
    "ＡＢｃ",
    "①",
    "ª",
    "x²",
    "㍿",
    "\u212b",
    "\u2126",
    "\u1e9b\u0323",
    "e\u0301",
    "\u00e9",
    "A\u030a",
    "\u1100\u1161\u11a8",
    "각",
    "\uac00\u11a8",
    "\u0958",
    "\u0915\u093c",
    "क्षि",
    "\u0e33",
    "ﷺ",
    "\u2024\u2025…",
    "ŉ",
    "ĳ",
    "ǆ",
    "ǅ",
    "Ǆ",
    "\u1fbc",
    "\u0344",
    "\u2f80",
    "\U0002f800",
    "\uf900",
    "ẛ",
    "\U0001d400",
    "ﾞ",
    "\u3131",
    "\uffe3",
    "\u00b4",
    "㋿",
    "🅐",
    "\U00011938",
]
CASES = [
    "İ",
    "ı",
    "ß",
    "ẞ",
    "Σς",
    "ΑΣ",
    "\u212a",
    "Ⅻ",
    "Ⓐ",
    "ᏸ",
    "Ꭰ",
    "\U00010400",
    "Ǿ",
    "ÀÉÎÕÜ",
    "ЁЖ",
    "Ͱ",
    "Ა",
    "Ⱥ",
    "Ɐ",
]
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + [
    "…",
    "—",
    "«",
    "»",
    "。",
    "、",
    "،",
    "؟",
    "।",
    "·",
    "§",
    "¶",
    "¿",
    "‘",
    "’",
    "“",
    "„",
    "†",
    "€",
    "£",
    "°",
    "×",
    "÷",
    "≠",
    "←",
    "\u2e43",
    "\u166d",
    "\u0c77",
    "''",
    "``",
    "...",
    "--",
    "n't",
    " ' ",
    "\u2581",
    "\u2581\u2581",
    "_",
    "\u0120",
    "\u010a",
]
SPECIALS = [
    "[CLS]",
    "[SEP]",
    "[UNK]",
    "[MASK]",
    "[PAD]",
    "[cls]",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<mask>",
    "<S>",
    "##",
    "##ing",
    "<0x41>",
    "<0xE2>",
    "[unused1]",
    "Große Tokens",
    "[CLS",
    "<s><s>",
]
# The first and last characters of blocks.
BLOCKS = [
    (0x20, 0x7E),
    (0x80, 0x24F),
    (0x250, 0x36F),
    (0x370, 0x52F),
    (0x530, 0x6FF),
    (0x700, 0x8FF),
    (0x900, 0xDFF),
    (0xE00, 0x109F),
    (0x10A0, 0x137F),
    (0x1400, 0x18AF),
    (0x1900, 0x1CFF),
    (0x1D00, 0x1FFF),
    (0x2000, 0x218F),
    (0x2190, 0x2BFF),
    (0x2C00, 0x2E7F),
    (0x2E80, 0x30FF),
    (0x3100, 0x33FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xABFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFB00, 0xFFEF),
    (0x10000, 0x1046F),
    (0x11000, 0x110CD),
    (0x1D000, 0x1D7FF),
    (0x1E800, 0x1E95F),
    (0x1F000, 0x1FAFF),
    (0x20000, 0x2FA1F),
    (0xE0000, 0xE01EF),
]
# Characters of Unicode 16 and later, which older tables do not have.
NEWER = [
    (0x558, 0x558),
    (0x58B, 0x58C),
    (0x5C8, 0x5C9),
    (0x88F, 0x88F),
    (0x897, 0x897),
    (0xB53, 0xB54),
    (0xC5C, 0xC5C),
    (0xCDC, 0xCDC),
    (0xCF3, 0xCF3),
    (0xECE, 0xECE),
    (0x1ACF, 0x1AF0),
    (0x1B4E, 0x1B4F),
    (0x1B7F, 0x1B7F),
    (0x1C89, 0x1C8A),
    (0x208F, 0x208F),
    (0x209D, 0x209F),
    (0x2E60, 0x2E63),
    (0xA7CB, 0xA7CF),
    (0xA7D2, 0xA7D2),
    (0xA7D4, 0xA7D4),
    (0xA7DA, 0xA7DD),
    (0xA7E2, 0xA7E2),
    (0xA7F1, 0xA7F1),
    (0xAB6C, 0xAB6D),
    (0x1D127, 0x1D128),
    (0x1D250, 0x1D281),
    (0x1D6A6, 0x1D6A6),
    (0x1D7CC, 0x1D7CD),
    (0x1FBFA, 0x1FBFA),
    (0x2B73A, 0x2B81F),
    (0x2CEA2, 0x2F7FF),
]


class Draw:
    """Random numbers by xorshift64*, the same for every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, end):
        self.state ^= self.state >> 12
        self.state ^= self.state << 25 & 0xFFFFFFFFFFFFFFFF
        self.state ^= self.state >> 27
        return (self.state * 2685821657736338717 >> 32 & 0xFFFFFFFF) * end >> 32

    def of(self, items):
        return items[self.below(len(items))]

    def character(self):
        first, last = self.of(BLOCKS)
        code = first + self.below(last - first + 1)
        return "x" if any(a <= code <= b for a, b in NEWER) else chr(code)


def _long_word(draw):
    unit = draw.of(["a", "ing", "é", "字", "q", "🙂", "the", "e\u0301", "\u2581", "ab", "9", "!"])
    return unit * draw.of([9, 33, 50, 99, 100, 101, 130])


def _fragment(draw):
    kind = draw.below(20)
    if kind < 7:
        return draw.of(WORDS)
    if kind == 7:
        return "".join(draw.character() for _ in range(1 + draw.below(4)))
    if kind == 8:
        return draw.of(WORDS) + draw.of(MARKS) * (1 + draw.below(2)) + draw.character()
    if kind == 9:
        return draw.of(WORDS)[: 1 + draw.below(4)] + draw.of(SIGNS) + draw.of(WORDS)
    if kind == 10:
        return _long_word(draw) if draw.below(8) == 0 else draw.of(SPECIALS)
    if kind == 11:
        return draw.of(WORDS).upper() if draw.below(2) else draw.of(CASES)
    if kind == 12:
        return chr(0x61 + draw.below(26)) + draw.of(MARKS) + draw.of(MARKS)
    return draw.of([SPACES, INVISIBLE, CONTROLS, EMOJI, FORMS, SIGNS, SPECIALS][kind - 13])


def lines():
    draw = Draw(20240229)
    for number in range(COUNT):
        if number < len(SENTENCES):
            yield SENTENCES[number]
            continue
        joint = draw.of(["", "", " ", " ", " ", "  "])
        yield joint.join(_fragment(draw) for _ in range(draw.below(10)))
