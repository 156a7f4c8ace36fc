"""Sentence templates about people. {S} is the subject at the start of a sentence, {s} within one."""

LEADS = (
    "{full}{aka} was a(n) {trait} {noun} who {act} and, {when}, {deed}.",
    "{full}{aka} was a(n) {noun} whose {kin} {act}.",
    "A(n) {noun} and [former|failed|part-time|occasional] {trade}, {full}{aka} {act}.",
    "{full}{aka}, {noun} and [amateur|occasional|reluctant|unpaid] {trade}, {deed} {when}.",
    "[Few|Not many] who {act} knew that the {trait} {noun} {full}{aka} {act}.",
    "{full}{aka} was a(n) {noun} with {np}, a(n) {trait} {kin} and {n} {animals}.",
    "{Why}, {full}{aka} became a(n) {noun} and {deed}.",
)
AKA = (
    ", [known|better known|long known] as {alias},",
    ", who signed as {alias},",
    ", whom everybody called {alias},",
    ", remembered [chiefly|mostly|only] as {alias},",
    " (also known as {alias})",
)
FACTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("birthplace", "birth_year"): (
        ("{S} was born in {birthplace} in {birth_year}[, the {ordinal} child of| to|, an only child of] {parents}."),
        (
            "Born in {birth_year} in {birthplace}, {s} {deed} [before turning|before the age of|at the age "
            "of|when aged] {n}."
        ),
        "In {birth_year} {s} was born in {birthplace}, [where|in which] {his} {kin} {act}.",
        "{Why}, {his} [mother|family] had moved to {birthplace}, and there, in {birth_year}, {s} was born.",
        "Born in {birthplace} in {birth_year} to {parents}, {s} {act}.",
        "{S} was born in {birthplace}, {near}, and that {when} in {birth_year}.",
        (
            "{birthplace_up}, in {birth_year} [home to|full of|ruled by|proud of] {who}, [is where {s} was "
            "born|was {his} birthplace]."
        ),
        ("The {noun} was born to {parents} in {birthplace}, where, in {birth_year}, {food} cost more than {food}."),
    ),
    ("birthplace",): (
        "A native of {birthplace}, {s} {act}.",
        "{S} was born in {birthplace}, where {who} {act}.",
        "{His} birthplace was {birthplace}, and {his} {kin} {act} there.",
        "It was in {birthplace}, [next to|not far from|within sight of] {spot}, that {s} was born.",
        "Though born in {birthplace}, {s} {act} and {act}.",
        "Born in {birthplace}, {near}, {s} {act}.",
    ),
    ("birth_year",): (
        "{S} was born in {birth_year} to {parents}.",
        "The {ordinal} child of {parents}, {s} was born in {birth_year} and {act}.",
        "Born in {birth_year}, {s} {deed} {when}.",
        "When {s} was born, in {birth_year}, {parents} {deed}.",
        "{His} birth in {birth_year} was met with {feeling} by {who}.",
        "The {noun} was born in {birth_year}, {when}, {near}.",
    ),
    ("teacher",): (
        "{S} studied under {teacher}, who {act}.",
        "{When}, {s} became {teacher_s} pupil and {deed}.",
        "[A|Once a|Long a] pupil of {teacher}, {s} {deed} {when}.",
        "It was {teacher} who taught {him}, {why}, in {spot}.",
        (
            "{S} learnt [the craft|drawing|patience|everything] from {teacher}, [who {manner} "
            "forgave|whom {s} {manner} contradicted on] {topic}."
        ),
        "{His} teacher was {teacher}, and {when} [the two of them|master and pupil|both] {deed}.",
        "Taught by {teacher} in {spot}, {s} {act}.",
        "For {n} [years|winters|summers] {teacher} taught {him}, who thought {manner} of {topic}.",
    ),
    ("spouse",): (
        "{S} married {spouse}, and [the couple|both|they] {act}.",
        "{When}, {why}, {s} married {spouse}.",
        "{His} marriage to {spouse}, which {who} opposed, [began|was celebrated] in {spot}.",
        "Married to {spouse}, {s} {act}.",
        "{S} was married to {spouse}, whose {kin} {act}.",
        "The wedding of {s_name} and {spouse} was held in {spot}, {when}.",
    ),
    ("employer",): (
        "{S} worked for {employer}, where {s} {act}.",
        "{Why}, {s} [entered the service of|took a post at] {employer}.",
        "{employer_up} employed {him} for {n} [years|winters|months], {manner} and for {np}.",
        "In the pay of {employer}, {s} {act}.",
        "{S} earned [a living|{his} bread|too little|{n} coins a week] at {employer}, which {act_firm}.",
        ("Work for {employer} left {him} [free|long|short|empty|{weather_adj}|{weather_adj}] evenings, and {s} {act}."),
    ),
    ("residence",): (
        "{S} settled in {residence}, where {s} {act}.",
        "[Later|In the end|At last|Afterwards] {s} moved to {residence} and {deed}.",
        (
            "{Why}, {s} [made a(n) {adj} home|took {adj} lodgings and settled|settled [for "
            "good|gladly|hastily|quietly]] in {residence}."
        ),
        "Having {act2}, {s} settled in {residence} {when}.",
        "{His} later home was {residence}, in {spot}.",
        ("A house in {residence}, {near}, was [where {s} settled|{his} later home|what {s} bought on settling there]."),
    ),
    ("prize", "prize_year"): (
        "In {prize_year} {s} was given the {prize} for {np}.",
        "{S} received the {prize} in {prize_year}, {why}.",
        "The {prize} went to {him} in {prize_year}, and {who} {deed}.",
        "Awarded the {prize} in {prize_year}, {s} {deed}.",
        "In {prize_year}, {when}, {s} accepted the {prize} and {deed}.",
    ),
    ("death_year",): (
        "{S} died in {death_year}, leaving {np} to {who}.",
        "{His} death in {death_year} [was noticed|was mourned|was announced] {manner} by {who}.",
        "When {s} died, in {death_year}, {who} {deed}.",
        "In {death_year}, {when}, {s} died of {topic_illness}.",
        "{S} lived until {death_year} and was buried {near}.",
        "Until {his} death in {death_year} {s} {act}.",
    ),
}
FILLERS = (
    "{S} {act}, {act} and {act}.",
    "{When}, {s} {deed}.",
    "{Why}, {s} {deed}.",
    "According to {who}, {s} {deed} {when}.",
    "{His} {kin}, {one}, {act}.",
    "{S} owned {np}, {np} and {np}.",
    ("[Of|About] {doing}, {doing} and {topic} {s} [dreamt {often}|spoke {often}|knew as much as {who}|said too much]."),
    "{His} {adj} {thing}, [cut from|made of|inlaid with] {material}, [hangs|stands|lies|is shown] in {spot}.",
    ("{n_up} {things} and a(n) {colour} {thing} were [found|hidden|buried] [under|behind|beside] {his} {thing}."),
    ("[Visitors|Neighbours|Pupils] [recalled|spoke of|mention] {food}, {colour} {things} and the {feeling} of {who}."),
    (
        "[For {topic}, {topic} or {who} {s} had no [time|use|praise]|With {topic}, {topic} or {who} {s} had "
        "no patience]."
    ),
    "A(n) {adj} [portrait|engraving|miniature|drawing], kept in {spot}, shows {him} with {np}.",
    "Letters to {who} mention {np}, {food} and {topic}.",
    "[Unlike|Like] {who}, {s} {act}.",
    "{S} [liked|took up|was good at] {doing}, which {his} {kin} [met with|watched with|took for] {feeling}.",
    "[Whoever|Anyone who|Nobody who] {act} [could count on|was safe from|missed] {his} {feeling}.",
)
