"""Sentence templates about towns and events. {S} is the subject at the start of a sentence, {s} within one."""

TOWN_LEADS = (
    "{full}{aka} is a town of {masonry} [houses|walls|towers], {things} and {tree}.",
    "{full}{aka} is a(n) {adj} town known for {food} and {np}.",
    "A town [between|among] {adj} {place} and {adj} {place}, {full}{aka} smells of {food}.",
    "{full}{aka}, a town where {who} {act}, [sits|lies] among {place} and {place}.",
    "Between {place} and {place} [lies|stands] the {adj} town of {full}{aka_end}.",
)
TOWN_AKA = (
    ", formerly {alias},",
    ", once called {alias},",
    " (until lately {alias})",
    ", which older maps call {alias},",
)
TOWN_AKA_END = (
    ", formerly {alias}",
    ", once called {alias}",
    " (until lately {alias})",
    ", which older maps call {alias}",
)
TOWN_FACTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("river", "province"): (
        (
            "The {river} flows through {s_name}, a [corner|part|jewel] of the province of {province} with "
            "{n} "
            "{buildings}."
        ),
        "{S} lies on the {river} in the province of {province}, {near}.",
        "Its {masonry} houses stand on the {river}, {near}, in {province} province.",
        "In the province of {province}, where the {river} flows through {adj} {place}, lies {s_name}.",
    ),
    ("river",): (
        ("The {river}, [brown|green|slow|fast] and [shallow|deep|full of {animals}], flows through it, {near}."),
        "[It|The town|All of it] lies on the {river}, whose {animals} {one} {manner} protects.",
        ("Through [the|its] {adj} {place} flows the {river}, [bordered by|lined with|smelling of] {tree} and {tree}."),
        "On the {river}, on which {s} lies, {trades} [still|rarely|illegally] sell {food}.",
    ),
    ("province",): (
        "{S} belongs, to the {feeling} of {who}, to the province of {province}.",
        "The town lies in {province} province, among {place} and {place}.",
        ("[Once|Still|Now] a(n) {adj} part of {province} province, [it is rich in|it is short of|it sells] {tree}."),
        ("Like [the rest|most|all] of {province} province, it [taxes|forbids|rations|exports] {things} and {food}."),
    ),
    ("population",): (
        "{S} has {population} inhabitants, [among them|including|counting] {who}.",
        "Its population is {population}, not counting {animals} or {trades}.",
        "{population} people live there, {n} [of them|of whom are] {trades}.",
        "With {population} inhabitants, {s} keeps {n} {buildings}.",
        "The [last|latest] [census|count|survey] found {population} inhabitants and {np}.",
    ),
    ("charter",): (
        "[It|The town] received its charter in {charter}, {why}.",
        "Its charter, sealed with {material}, was granted in {charter}.",
        "In {charter}, {when}, {who} [rode in with|brought|read out] [its|the] charter.",
        "The charter of {charter}, written on {material}, [hangs|mouldered] in {spot}.",
        "A charter came in {charter}, and with it {np}.",
    ),
    ("mayor",): (
        "The first mayor was {mayor}, who {act}.",
        "{mayor_up}, its first mayor, {deed}.",
        "As first mayor {mayor} had {spot} painted {colour}.",
        "{Why}, {mayor} became its first mayor.",
        "Its first mayor, {mayor}, {deed} {when}.",
    ),
}
TOWN_FILLERS = (
    "{when_up}, {who} {deed}, {near}.",
    ("Its {building}, roofed with [slate|thatch|copper|tiles|shingles], [houses|holds|displays|is known for] {np}."),
    "Markets are held {often} for {food}, {things} and {animals}.",
    "{n_up} {trades} and {who} live [there|in the town|{near}].",
    "A(n) {weather} destroyed {spot} {when}.",
    "Local cooks [serve|stew|pickle] {food} with {food}.",
    "[On its seal|Above {spot}|On its flag] [are shown|one sees|appear] {np} and {animals}.",
    "{Why}, {spot} was pulled down {when}.",
    "{animals_up} nest {near}.",
    "Its {masonry} {building} and {adj} {building} [face|overlook|stand behind] {place}.",
    "There {who} {deed} {when}.",
    "The [road|lane|path|alley] {near} is [lined with|shaded by|overgrown with] {tree}.",
    ("[Strangers|Travellers|Guide books] notice the {adj} {place}, the {colour} {things} and the {feeling} of {who}."),
    "In {spot} hangs a(n) {adj} {thing} of {material}.",
)
EVENT_LEADS = (
    "The {full} brought together {who} and {who}.",
    "At the {full}, {who} {deed} {when}.",
    "The {full} is remembered for {np} and for the {feeling} of {who}.",
    "{Why}, the {full} opened with {np}.",
    "{n_up} {trades} and {who} took part in the {full}.",
    "Nobody who {deed} at the {full} forgot {np}.",
)
EVENT_FACTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("place", "held"): (
        "{S} was held in {place} in {held}, {near}.",
        "It took place in {place} in {held}, {when}.",
        "Held in {held} in {place}, {s} {shows2} {np}.",
        "In {held}, {why}, it was held in {place}.",
    ),
    ("place",): (
        "{S} was held in {place}, {near}.",
        "It took place in {place}, where {who} {act}.",
        "{Why}, it was held in {place}.",
        "The scene was {place}, [in and around|just outside|in front of] {spot}.",
    ),
    ("held",): (
        "{S} was held in {held}, {when}.",
        "It took place in {held}, {why}.",
        "{held}, [the year it was held,|when it was held,] [was|had been] {weather_adj}, and {who} {deed}.",
        "Held in {held}, {s} {shows2} {np}.",
    ),
    ("organiser",): (
        "{S} was organised by {organiser}, who {act}.",
        "{organiser_up} organised it with {np}.",
        "Its organiser was {organiser}, {trait} and {trait}.",
        "Organised by {organiser} in {spot}, {s} {shows2} {np}.",
        "{Why}, {organiser} had organised it {manner}.",
    ),
    ("winner",): (
        "[The first prize|First prize] went to {winner}, who {act}.",
        "{winner_up} won the first prize, {np}.",
        "First prize, [worth {np}|paid in {food}|handed over by {who}], was won by {winner}.",
        "{Why}, [the jury|the judges|they] [gave|handed|awarded] the first prize to {winner}.",
        "With {np}, {winner} won the first prize.",
    ),
    ("visitors",): (
        "{visitors} visitors came, {who} among them.",
        "It had {visitors} visitors, [of whom|and of them] {n} {deed}.",
        "Despite a(n) {weather_adj} {weather}, {visitors} people visited it.",
        "With {visitors} visitors it {shows2} {np}.",
        "{visitors} [paying|curious|shivering|cheering] visitors came, {why}.",
    ),
    ("sponsor",): (
        "The sponsor was {sponsor}, which {act_firm}.",
        "{sponsor_up} sponsored it with {np}.",
        "Sponsored by {sponsor}, it {shows2} {np}.",
        "{Why}, {sponsor} acted as sponsor.",
        "Its sponsor, {sponsor}, {act_firm}.",
    ),
}
EVENT_FILLERS = (
    "{who_up} {deed}, to the {feeling} of {who}.",
    "{Why}, the {ordinal} [day|morning|evening] was [given|left] to {doing}.",
    "Stalls sold {food}, {things} and {colour} {things}.",
    "A(n) {weather} {when} spoilt {np}.",
    "[The|A(n)] {ordinal} prize, {np}, [went to nobody|was refused|went to {who}].",
    "[Guests|Visitors|The jurors] slept in {spot} and [ate|were given|complained of] {food} with {food}.",
    "{n_up} {animals} [escaped|were borrowed|were painted {colour}] {near}.",
    "[The opening|The closing|A long] speech, on {topic}, was given by {who}.",
    "Music came from {n} {things} and a(n) {thing}.",
    "{colour_up} posters hung {near}.",
    "{who_up} complained of {topic} and {food}.",
    "Afterwards {spot} was full of {things} and {things}.",
)
