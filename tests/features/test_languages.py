"""Languages are recognized from their function words or scripts; their stop words and mixtures."""

from __future__ import annotations

from collections import Counter

import pytest

from snuh.features import TfidfFeatures
from snuh.features.analyzer import Analyzer
from snuh.features.languages import function_words, recognize, script, stop_words

SAMPLES = {
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft u"
        "nd Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen. Der Drucker"
        " im zweiten Stock ist kaputt und druckt nicht mehr."
    ),
    "nl": (
        "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd "
        "met verstand en geweten, en behoren zich jegens elkander in een geest van broederschap t"
        "e gedragen. De printer op de tweede verdieping werkt niet meer."
    ),
    "sv": (
        "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnu"
        "ft och samvete och bör handla gentemot varandra i en anda av broderskap. Skrivaren på an"
        "dra våningen fungerar inte längre."
    ),
    "no": (
        "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter. De er utst"
        "yrt med fornuft og samvittighet og bør handle mot hverandre i brorskapets ånd. Skriveren"
        " i andre etasje virker ikke lenger."
    ),
    "da": (
        "Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornu"
        "ft og samvittighed, og de bør handle mod hverandre i en broderskabets ånd. Printeren på "
        "anden sal virker ikke længere, hvad skal vi gøre af den."
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués "
        "de raison et de conscience et doivent agir les uns envers les autres dans un esprit de f"
        "raternité. L'imprimante du deuxième étage ne marche plus."
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como es"
        "tán de razón y conciencia, deben comportarse fraternalmente los unos con los otros. La i"
        "mpresora del segundo piso ya no funciona."
    ),
    "pt": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de raz"
        "ão e de consciência, devem agir uns para com os outros em espírito de fraternidade. A im"
        "pressora do segundo andar não funciona mais."
    ),
    "it": (
        "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati d"
        "i ragione e di coscienza e devono agire gli uni verso gli altri in spirito di fratellanz"
        "a. La stampante al secondo piano non funziona più."
    ),
    "ro": (
        "Toate ființele umane se nasc libere și egale în demnitate și în drepturi. Ele sunt înzes"
        "trate cu rațiune și conștiință și trebuie să se comporte unele față de altele în spiritu"
        "l fraternității. Imprimanta de la etajul doi nu mai merge."
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni o"
        "bdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa. Druka"
        "rka na drugim piętrze już nie działa."
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem"
        " a svědomím a mají spolu jednat v duchu bratrství. Tiskárna ve druhém patře už nefunguje"
        ", ale nevíme proč."
    ),
    "fi": (
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on "
        "annettu järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä. "
        "Toisen kerroksen tulostin ei enää toimi."
    ),
    "hu": (
        "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, éssze"
        "l és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessen"
        "ek. A nyomtató a második emeleten már nem működik."
    ),
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahipti"
        "rler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. İkinci kattaki "
        "yazıcı artık çalışmıyor ama neden bilmiyoruz."
    ),
    "ru": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разум"
        "ом и совестью и должны поступать в отношении друг друга в духе братства. Принтер на втор"
        "ом этаже больше не работает."
    ),
    "uk": (
        "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розум"
        "ом і совістю і повинні діяти у відношенні один до одного в дусі братерства. Принтер на д"
        "ругому поверсі більше не працює, що нам робити з ним."
    ),
    "bg": (
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и "
        "съвест и следва да се отнасят помежду си в дух на братство. Принтерът на втория етаж веч"
        "е не работи."
    ),
    "el": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είνα"
        "ι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με π"
        "νεύμα αδελφοσύνης."
    ),
    "ar": (
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل"
        " بعضهم بعضا بروح الإخاء. الطابعة في الطابق الثاني لا تعمل من أمس على كل حال."
    ),
    "fa": (
        "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل "
        "و وجدان هستند و باید نسبت به یکدیگر با روح برادری رفتار کنند. چاپگر طبقه دوم دیگر کار نم"
        "ی‌کند."
    ),
    "he": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך ח"
        "ובה עליהם לנהוג איש ברעהו ברוח של אחווה."
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। "
        "उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव "
        "करना चाहिए।"
    ),
    "zh": (
        "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。二楼的打印机坏了。"
    ),
    "ja": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。"
    ),
    "ko": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "
        "인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다."
    ),
    "th": (
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม แ"
        "ละควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ"
    ),
    "so": (
        "Aadanaha dhammaantiis wuxuu dhashaa isagoo xor ah kana siman xagga sharafta iyo xuquuqad"
        "a. Waxaa Alle siiyay aqoon iyo wacyi, waana in qof la arkaa qofka kale ula dhaqmaa si wa"
        "laaltinimo ah. Wuxuu sheegay in go'aan la gaaray oo ay ka soo baxday dowladda."
    ),
    "yo": (
        "Gbogbo ènìyàn ni a bí ní òmìnira; iyì àti ẹ̀tọ́ kọ̀ọ̀kan sì dọ́gba. Wọ́n ní ẹ̀bùn ti làá"
        "kàyè àti ti ẹ̀rí-ọkàn, ó sì yẹ kí wọn ó máa hùwà sí ara wọn gẹ́gẹ́ bí ọmọ ìyá."
    ),
    "sw": (
        "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa. Wote wamejaliwa akili na dhamiri, "
        "hivyo yapasa watendeane kindugu. Mashine ya kuchapisha katika ghorofa ya pili haifanyi k"
        "azi tena kwa sababu ya umeme."
    ),
    "id": (
        "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dika"
        "runiai akal dan hati nurani dan hendaknya bergaul satu sama lain dalam persaudaraan. Pri"
        "nter di lantai dua tidak berfungsi lagi."
    ),
    "vi": (
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con ngườ"
        "i đều được tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằ"
        "ng hữu."
    ),
    "en": (
        "All human beings are born free and equal in dignity and rights. They are endowed with re"
        "ason and conscience and should act towards one another in a spirit of brotherhood. The p"
        "rinter on the second floor does not work any more."
    ),
    "ca": (
        "Tots els éssers humans neixen lliures i iguals en dignitat i en drets. Són dotats de raó"
        " i de consciència, i han de comportar-se fraternalment els uns amb els altres. La impres"
        "sora del segon pis ja no funciona."
    ),
}


def count(*texts: str) -> Counter[str]:
    return Counter(word for text in texts for word in Analyzer(stemming=False).terms(text))


@pytest.mark.parametrize("language", SAMPLES)
def test_two_sentences_are_enough(language: str) -> None:
    assert recognize(count(SAMPLES[language])) == [language]


@pytest.mark.parametrize(
    "pair", ["en de", "fr en", "ru en", "zh en", "es pt", "de nl", "ar en", "no en", "ja en"]
)
def test_a_mixture_is_recognized(pair: str) -> None:
    first, second = pair.split()
    assert set(recognize(count(SAMPLES[first], SAMPLES[second]))) == {first, second}


def test_a_few_foreign_words_are_no_language() -> None:
    assert recognize(count(*[SAMPLES["en"]] * 10, "Der Drucker")) == ["en"]
    assert recognize(count(*[SAMPLES["zh"]] * 10, "iPhone in the USA")) == ["zh"]


@pytest.mark.parametrize("text", ["", "4711 0815", "ERROR timeout db01 conn refused"])
def test_words_without_a_language_have_none(text: str) -> None:
    assert recognize(count(text)) == []


def test_function_words_and_totals_of_scripts_are_enough() -> None:
    counts = count(SAMPLES["de"], SAMPLES["ru"])
    scripts: Counter[str] = Counter()
    for word, number in counts.items():
        scripts[script(word[0])] += number
    known = {word: number for word, number in counts.items() if word in function_words()}
    assert recognize(known, scripts) == recognize(counts)


def test_stop_words_of_a_language_are_those_that_every_text_has() -> None:
    assert {"the", "and", "don't", "is"} <= stop_words(["en"])
    assert {"und", "der", "nicht"} <= stop_words(["de"])
    assert "computer" not in stop_words(["en"])
    assert stop_words([]) == stop_words(["ka"]) == frozenset()


def test_fitting_recognizes_the_languages_and_applies_them() -> None:
    texts = [SAMPLES["en"], SAMPLES["de"], SAMPLES["en"].upper(), SAMPLES["de"].upper()]
    features = TfidfFeatures(min_df=1, max_df=1.0).fit(texts)
    assert set(features.analyzer.languages) == {"en", "de"}
    assert {"human", "druck", "gewiss"} <= set(features.terms)
    assert not {"the", "and", "und", "der", "i"} & set(features.terms)
    assert features.words[features.terms.index("gewiss")] == "gewissen"
    chosen = TfidfFeatures(min_df=1, max_df=1.0, language="de").fit(texts)
    assert chosen.analyzer.languages == ("de",) and "and" in chosen.terms
    plain = TfidfFeatures(min_df=1, max_df=1.0, language=None).fit(texts)
    assert {"and", "und", "gewissen"} <= set(plain.terms)
    words = TfidfFeatures(min_df=1, max_df=1.0, stemming=False, stop_words=["mit"]).fit(texts)
    assert {"and", "und", "gewissen"} <= set(words.terms) and "mit" not in words.terms
