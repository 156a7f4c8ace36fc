"""Sentence templates about firms and works. {S} is the subject at the start of a sentence, {s} within one."""

FIRM_LEADS = (
    "{full} is a(n) {firm_adj} firm that {act_firm}.",
    "{full}, a firm with {np} on its sign, {act_firm}.",
    "Few firms {act_bare} as [rarely|cheaply|eagerly|noisily|proudly|slowly|neatly] as {full}.",
    "{full} is a(n) {firm_adj} firm whose {building} {smells} of {food} and {material}.",
    "The {colour} carts of {full}, a(n) {firm_adj} firm, are known {near}.",
    "A(n) {firm_adj} firm run by {who}, {full} {act_firm}.",
)
FIRM_FACTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("founder", "founded"): (
        "{S} was founded in {founded} by {founder}, who {act}.",
        "{founder_up} founded it in {founded} with {np} and {np}.",
        "In {founded}, {why}, {founder} founded {s_name}.",
        "Founded by {founder} in {founded}, {s} {act_firm}.",
        "It goes back to {founder}, who in {founded} rented {spot} [for|in exchange for] {np}.",
    ),
    ("founder",): (
        "{S} was founded by {founder}, [against|despite|unmoved by] the {feeling} of {who}.",
        "{Why}, {founder} founded it in {spot}.",
        "Its founder, {founder}, {act}.",
        "It goes back to {founder}, who had {act2}.",
        "It was {founder} who founded it, {when}, {near}.",
    ),
    ("founded",): (
        "{S} was founded {when} in {founded}, in {spot}.",
        "Founded in {founded}, {s} {act_firm}.",
        "It was, {why}, founded in {founded}.",
        "[Carved into|Painted on|Stamped on] {np} [is|stands|one reads] the year of its founding, {founded}.",
    ),
    ("seat",): (
        "{S} has its [seat|main seat] in {seat}, {near}.",
        "Its seat is in {seat}, where {who} {act}.",
        "{Why}, it [keeps|took|has] its seat in {seat}.",
        "From its seat in {seat} {s} sends {np} to {who}.",
        "Seated in {seat}, {s} {act_firm}.",
        "The {adj} [head office|main office], [with|home to|known for] {np}, is in {seat}.",
    ),
    ("staff",): (
        "{S} employs {staff} people, [mostly|many of them|among them] {trades}.",
        "With {staff} workers {s} {act_firm}.",
        "Its workforce of {staff} {act}.",
        "{staff} people, {who} [among them|included], work there.",
        "The payroll lists {staff} people, {n} {trades} and {who} included.",
    ),
    ("product",): (
        "{S} makes {product}, {manner} and from {material}.",
        "Its products are {product}, packed in {material} by {who}.",
        "{product_up} are [its trade|what it makes|all it makes], {why}.",
        "It lives by making {product}, which {one} {manner} [inspects|tests|admires].",
        "Known for {adj} [catalogues|premises|wagons|manners], {s} makes {product}.",
    ),
    ("owner",): (
        "{S} was taken over by {owner}, {why}.",
        "{When}, {owner} took over the firm [together with|along with|and] {np}.",
        "Now that {owner} has taken it over, [{s}|the firm|its management] {act_firm}.",
        "Taken over by {owner} {when}, it kept {np}.",
        "It now belongs to {owner}, which took it over {why}.",
    ),
}
FIRM_FILLERS = (
    "{S} {act_firm} and {act_firm}.",
    "[In {season}|On {day}s|Each {month}|In {weather_adj} weather] {s} {act_firm}.",
    "{Why}, {who} was given {np}.",
    "Its {building} {smells} of {food}, {material} and {food}.",
    "A(n) {weather} {when} cost the firm {np}.",
    ("[Apprentices|Beginners|New hands] [begin with|start on|are trained on] {np} and [end with|go on to] {np}."),
    "[Letters|Complaints|Questions] about {topic} [are answered|are read|are left unread] by {who}.",
    "[In the yard|Behind the gate|Under a tarpaulin|In its {building}] [stand|lie|rust] {np} and {np}.",
    "[The|A(n)] {colour} {thing} on its [letterhead|roof|wagons|invoices] recalls {who}.",
    "[Workers|Its {trades}|Carters|Older hands] are paid {often}, [partly|half|mostly] in {food}.",
    "{who_up} once {deed} at its gates.",
    "Rivals speak {manner} of its {things} and with {feeling} of its {things}.",
)
WORK_LEADS = (
    "{full} is a(n) {noun} about {who} who {act}.",
    "{full} is a(n) {adj} {noun} on {topic} and {topic}.",
    "A(n) {noun} in {n} parts, {full} tells how {who} {act}.",
    "In the {noun} {full}, {who} {act}, {why}.",
    (
        "{full}, a(n) {noun} full of {animals} and {tree}, [stirs|wavers between|owes its fame to|asks for] "
        "{feeling} and {feeling}."
    ),
    (
        "[Half {feeling}, half|Part {feeling}, part|Less {feeling} than] {feeling}: the {noun} {full} "
        "[concerns|follows|mourns|mocks|is about] {who}."
    ),
)
WORK_FACTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("creator", "year"): (
        "{S} was finished in {year} by {creator}, {why}.",
        "{creator_up} finished it in {year}, having {act2}.",
        "The {noun} is by {creator}, who finished it in {year} {near}.",
        "Begun {when}, it was finished in {year} by {creator}.",
        "In {year}, {when}, {creator} finished the {noun}.",
    ),
    ("creator",): (
        "The {noun} is by {creator}, who {act}.",
        "{Why}, {creator} created the {noun} in {spot}.",
        "Its creator, {creator}, {act}.",
        "{S} is [the work of|by] {creator}, [helped|hindered|advised] by {who}.",
        "Created by {creator} in {spot}, {s} {shows} {np}.",
        "{creator_up} created it {when}.",
    ),
    ("year",): (
        "{S} was finished in {year}, {when}.",
        "Finished in {year}, {s} {shows} {np}.",
        "It was, {why}, finished in {year}.",
        "Work on it, {manner} resumed {when}, was finished in {year}.",
        "Begun [in {spot}|over {food}|{n} {season}s before], it was finished in {year}.",
    ),
    ("dedicatee",): (
        "{S} is dedicated to {dedicatee}, who {act}.",
        "The dedication, [in {colour} ink|on {material}|above {np}], is to {dedicatee}.",
        "Dedicated to {dedicatee}, {s} {shows} {np}.",
        "{Why}, the {noun} is dedicated to {dedicatee}.",
        "A line about {topic} dedicates it to {dedicatee}.",
    ),
    ("setting",): (
        "{S} is set in {setting}, {near}.",
        "The {noun} is set in {setting}, [among|with] {trades} and {trades}.",
        "Set in {setting}, {s} {shows} {who}.",
        "Its setting is {setting}, where {who} {act}.",
        ("[All|Most|Half] of it plays in {setting}, [mostly in|partly in|in and around|never far from] {spot}."),
    ),
    ("backer",): (
        "[The {noun}|It] was paid for by {backer}, {why}.",
        "{backer_up} paid for the {noun} [with|partly in] {np}.",
        "The costs, {np} included, were borne by {backer}.",
        "Paid for by {backer}, {s} {shows} {np}.",
        "It was {backer} that paid for it, {why}.",
    ),
}
WORK_FILLERS = (
    "{S} {shows} {np}, {np} and {who}.",
    "{When}, {who} {deed} because of it.",
    "Critics spoke of {topic}, {topic} and {feeling}.",
    ("[The|Its] {ordinal} [part|scene|section], [about|on|given to] {doing}, is {manner} [left out|cut|skipped]."),
    (
        "Its [best-loved|longest|only {adj}|most quoted|{ordinal}] [passage|part|scene|image] "
        "[concerns|shows|praises] {np}."
    ),
    (
        "[One|The oldest|A(n) {adj}|A(n) {colour}|The {ordinal}] copy, bound in {material}, [is "
        "kept|lies|gathers dust|was "
        "found] in {spot}."
    ),
    "{who_up} called it {adj}, {adj} and {adj}.",
    ("{Why}, [the ending|its opening|the title|a line about {topic}] was [changed|shortened|censored] {n} times."),
    (
        "[Children|Sailors|Travellers|Soldiers|{trades_up}] [know its {animals} better than|prefer its "
        "{animals} to|quote its {animals} and forget|laugh at its {animals} and pity] its {trades}."
    ),
    "At its [first|second|last|{ordinal}] [showing|airing|appearance|revival] {who} {deed}.",
    "{n_up} {things} [are hidden in|enliven|disfigure|turn up in] its {ordinal} [part|scene].",
    "Its {colour} {things} [caused|met with|stand for|are a sign of] {feeling}.",
)
