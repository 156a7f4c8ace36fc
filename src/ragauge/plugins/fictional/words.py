"""The vocabulary of the prose: rules of single words, and of short filler phrases."""

from __future__ import annotations


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in text.split())


WORDS: dict[str, tuple[str, ...]] = {
    "adj": _list(
        "airy ample ancient angular awkward bare battered blunt bright brisk brittle broad bulky "
        "cheap coarse cold costly cracked crisp crooked curious damp dark deep delicate dented dim "
        "drab dry dull dusty elegant empty faded faint fine flat forgotten fragile gaunt glossy "
        "graceful grim handsome heavy hidden hollow icy inherited jagged large leaky lean light "
        "little long lopsided low mended mild mossy murky muted narrow neat noisy odd old ornate pale "
        "patched peculiar plain polished quaint quiet ragged rare rigid rough round rusty shabby "
        "shallow sharp short silent slender slow small smoky smooth soft sombre sour sparse square "
        "stately steep sticky stiff stout straight strange sturdy subtle sunlit tall tart tattered "
        "thick thin tilted tiny uneven unlit unpainted useful vague vast vivid weathered wide windy "
        "wooden worn"
    ),
    "thing": _list(
        "abacus almanac anchor anvil apron armchair atlas barometer barrel basin basket bell bellows "
        "bench bicycle blanket boat bonnet bookcase bottle bow box bracelet broom bucket buckle "
        "button cabinet candlestick canoe cape carpet cart cask chain chart chest chisel clock coat "
        "coin comb compass cradle crate cup curtain dagger desk dial diary door drum easel engine "
        "envelope fan fence fiddle flag flask flute fork fountain frame funnel gate gauge glove "
        "goblet gong hammer hammock handcart harness harp hat helmet hinge hook horn hourglass "
        "inkwell jar jug kettle key kite knife ladder lamp lantern lathe ledger lens letter lever "
        "lock loom lute magnet mallet map mask mirror mitten mortar mug nail necklace needle net "
        "notebook oar oven paddle parasol pendulum pillow pipe plank plough pocketknife pot press "
        "prism pulley pump purse quilt quill raft rake razor ribbon ring rope rudder rug sack saddle "
        "sail satchel saucepan saw scale scarf scroll scythe shawl shelf shield shovel shutter sickle "
        "sieve signpost sketchbook skillet sledge sling snuffbox sofa spade spindle spoon spyglass "
        "stamp stool stove strap sundial swing tablecloth tankard tapestry telescope tent thimble "
        "tile toolbox torch tray tripod trowel trumpet trunk umbrella urn vase veil viola violin "
        "wagon walking_stick wallet washtub watch wheel wheelbarrow whistle wig windmill wreath"
    ),
    "things": _list(
        "acorns anvils apples arrows awls axes badges banners barrels beads bells belts blankets "
        "bolts books boots bottles bowls bricks brooches brushes buckles buttons candles caps cards "
        "carpets casks chains chairs charts chimneys clocks coats coins combs corks cups curtains "
        "dolls drums eggshells engravings envelopes fans feathers fiddles flags flasks flints flutes "
        "forks fossils frames gloves goblets hammers handkerchiefs hats hinges hooks horseshoes jars "
        "jugs kettles keys kites knives ladders lamps lanterns leaflets lenses letters locks maps "
        "marbles masks matchboxes medallions mirrors moulds mugs nails napkins needles nets oars "
        "overcoats paddles paintings pamphlets pebbles pencils pennants pillows pins pipes plates "
        "posters pots postcards prints pulleys pumpkins puppets purses quills ribbons rings ropes "
        "rugs sacks saddles sails scarves scissors screws seashells shawls shells shovels shutters "
        "sketches skates slippers spades spectacles spoons stamps stools stoves tablets tankards "
        "thimbles tickets tiles toys trays trumpets trunks tunics umbrellas urns vases violins "
        "waistcoats walnuts watches whistles wigs wreaths"
    ),
    "material": _list(
        "alabaster alder amber ash basalt beech birch bone brass brick bronze canvas cedar chalk clay "
        "copper cork cotton ebony elm felt flax flint fur glass gneiss granite hemp horn iron ivory "
        "jute lace larch lead leather limestone linen maple marble oak oilcloth paper parchment peat "
        "pewter pine plaster poplar pumice quartz reed resin rosewood rubber rye_straw sandstone "
        "satin shale silk silver slate spruce steel straw sycamore tallow teak thatch tin velvet "
        "walnut wax whalebone wicker willow wool yew zinc"
    ),
    "masonry": _list(
        "basalt brick clay flint granite limestone marble oak pine sandstone slate stone thatched timber whitewashed"
    ),
    "firm_adj": _list(
        "cautious enterprising family-run large litigious long-established modest old old-fashioned "
        "prosperous provincial quarrelsome respectable secretive small struggling stubborn thrifty "
        "well-known young"
    ),
    "building": _list(
        "abbey academy almshouse arcade armoury assembly_room aviary bakery bank barn barracks "
        "bathhouse belfry boathouse brewery bridge cannery chandlery chapel cider_house cistern "
        "cloister coach_house coffee_house cooperage corn_exchange cottage courthouse creamery "
        "customs_house dairy distillery dovecote drying_loft dye_house farmhouse ferry_house "
        "fish_market forge foundry gallery gatehouse glasshouse granary guildhall harbour_office "
        "hayloft hospital hostel icehouse infirmary inn jetty kiln laundry library lighthouse "
        "lock_keeper's_lodge lodge malthouse manor market_hall mill mint museum nursery observatory "
        "oast_house orphanage palace pavilion pharmacy post_office pottery priory prison pump_room "
        "quarry railway_station rectory reading_room ropewalk salt_house sawmill schoolhouse shipyard "
        "slaughterhouse smithy smokehouse stable summer_house swimming_bath tannery tavern teahouse "
        "theatre threshing_floor tollhouse town_hall vestry viaduct warehouse washhouse watchtower "
        "weigh_house wheelwright's_shop winery workhouse"
    ),
    "animals": _list(
        "badgers bantams bats bees beetles bitterns boars buzzards carp cats cormorants cows crabs "
        "cranes crayfish crickets crows cuckoos deer dogs donkeys doves ducks eels egrets falcons "
        "ferrets finches foxes frogs geese goats grebes grouse guinea_fowl gulls hares hawks "
        "hedgehogs hens herons horses jackdaws kestrels larks lizards magpies mares martens mice "
        "moles moths mules newts nightingales otters owls oxen oysters partridges peacocks pheasants "
        "pigeons pigs pike plovers polecats ponies quails rabbits rams rats ravens robins rooks "
        "salmon sheep shrews silkworms snails snipe sparrows squirrels starlings stoats storks "
        "swallows swans swifts terns thrushes toads tortoises trout turkeys voles wagtails warblers "
        "wasps weasels woodpeckers wrens"
    ),
    "food": _list(
        "almonds anchovies apples apricots asparagus barley beans beetroot blackberries bread broth "
        "buckwheat butter buttermilk cabbage capers carrots celery cheese cherries chestnuts chicory "
        "chives cider crayfish cream cucumbers currants damsons dumplings eel elderflower fennel figs "
        "garlic gingerbread gooseberries hazelnuts herring honey horseradish juniper leeks lentils "
        "lettuce lovage mackerel malt marjoram marrow medlars milk millet mulberries mushrooms "
        "mustard mutton nettles nutmeg oatcakes oats olives onions pancakes parsley parsnips pears "
        "peas pepper pickles plums poppy_seed porridge potatoes prunes quinces radishes raisins "
        "raspberries rhubarb rice rosemary rye saffron sage salt sausages shallots smoked_trout "
        "sorrel spinach stew strawberries sultanas thyme tripe turnips veal venison vinegar walnuts "
        "watercress wheat whey"
    ),
    "trade": _list(
        "apothecary auctioneer baker bargeman barber basket_maker beekeeper blacksmith bookbinder "
        "brewer bricklayer butcher cabinetmaker candle_maker carpenter carter caulker chandler "
        "charcoal_burner chimney_sweep clerk clockmaker cobbler coachman cooper cordwainer "
        "corn_dealer customs_officer cutler dairyman distiller dyer engraver falconer farrier "
        "ferryman fishmonger forester fuller furrier gamekeeper gardener gilder glazier goldsmith "
        "grocer gunsmith haberdasher hatter herbalist horse_dealer innkeeper ironmonger joiner "
        "lacemaker lamplighter lighthouse_keeper locksmith maltster mason messenger midwife miller "
        "milliner miner muleteer net_maker notary organ_builder pedlar pewterer piano_tuner pilot "
        "plasterer ploughman postmaster potter printer quarryman rope_maker saddler sailmaker "
        "salt_boiler sawyer schoolmaster sexton shepherd shipwright silversmith stonecutter surveyor "
        "tailor tanner thatcher tinsmith tollkeeper toymaker trapper turner upholsterer vintner "
        "watchman wax_merchant weaver wheelwright wool_merchant"
    ),
    "topic": _list(
        "acoustics alphabets anatomy ants astronomy ballads beekeeping bells birdsong bookkeeping "
        "botany bridges candles canals caves cheese chess clouds coins comets crystals dance "
        "diplomacy divination drainage dreams drought dyes earthquakes echoes eclipses education "
        "embroidery epidemics etiquette ferns fevers fishing folklore fossils gardening geometry "
        "ghosts glaciers glass grafting grammar grasses gravity hail handwriting harbours heraldry "
        "herbs hunting hygiene hymns icebergs inheritance insects insurance irrigation knots lakes "
        "lenses lichens lightning local_dialects locks logarithms magnetism maps marshes masonry "
        "medicine memory metals meteors migration mining moonlight mosses music navigation nutrition "
        "oaths optics orchards oysters parables peat penmanship perspective pigments planets poisons "
        "poverty prisons probability proverbs puppetry rainbows rhetoric riddles rivers roads roses "
        "rust sailing salt seaweed sewers shadows sheep shorthand sleep snow sound spiders "
        "stained_glass steam storms sundials surgery tariffs taxation telegraphy tides timber tobacco "
        "topiary trade translation tunnels typography usury vaccination ventilation vineyards "
        "volcanoes weather weaving whales wheat wills wind witchcraft wool"
    ),
    "tree": _list(
        "alders almonds aspens beeches birches blackthorns box_trees brambles briars cedars cherries "
        "chestnuts cypresses dogwoods elders elms ferns figs firs foxgloves gorse hawthorns hazels "
        "heather hollies hops hornbeams irises ivy junipers larches lavender lilacs lilies limes "
        "maples medlars mulberries nettles oaks pears pines plane_trees plums poplars quinces reeds "
        "roses rowans rushes sloes spruces sunflowers sycamores thistles vines walnuts willows "
        "wisteria yews"
    ),
    "colour": _list(
        "amber ashen black blue bronze brown buff chestnut copper cream crimson dun emerald fawn "
        "golden green grey indigo lemon lilac maroon mauve ochre olive orange pearl pink plum purple "
        "red russet rust saffron scarlet silver tan turquoise violet white yellow"
    ),
    "weather": _list(
        "cloudburst drizzle drought fog gale hailstorm frost heatwave mist rainstorm sandstorm sleet "
        "snowfall squall thaw thunderstorm whirlwind"
    ),
    "trait": _list(
        "absent-minded affable blunt bookish cantankerous cautious cheerful combative courteous "
        "devout diligent eccentric exacting forgetful frugal garrulous generous good-humoured gruff "
        "hospitable impatient ingenious irritable laconic litigious meticulous obstinate outspoken "
        "patient pious practical prickly punctual quarrelsome reclusive reserved restless sceptical "
        "secretive self-taught shrewd soft-spoken spendthrift stubborn superstitious tactful tireless "
        "unassuming vain versatile well-read wry"
    ),
    "manner": _list(
        "abruptly anonymously barely belatedly briefly cautiously cheaply cheerfully doggedly eagerly "
        "faithfully gladly grudgingly happily hastily idly jointly loudly meekly nightly openly oddly "
        "patiently politely privately promptly publicly punctually quietly rarely readily reluctantly "
        "repeatedly secretly seldom sternly stubbornly tirelessly unwillingly usually warily wearily "
        "weekly willingly yearly"
    ),
    "n": _list(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty thirty forty fifty sixty"
    ),
    "ordinal": _list("first second third fourth fifth sixth seventh eighth ninth tenth"),
    "month": _list("January February March April May June July August September October November December"),
    "day": _list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "weather_adj": _list(
        "bitter bright chilly clear cloudy damp dry foggy freezing frosty grey hot humid mild misty "
        "muddy overcast rainy snowy stormy sultry sunny thundery warm wet windy"
    ),
    "garment": _list("apron bonnet cape cap cloak coat gown hat hood jacket scarf shawl sash tunic veil waistcoat"),
    "child": ("daughter", "son"),
    "season": _list("spring summer autumn winter"),
    "kin": _list(
        "aunt brother cousin daughter father godmother grandfather grandmother mother nephew niece sister son uncle"
    ),
    "feeling": _list(
        "admiration affection alarm amusement annoyance anxiety approval astonishment bewilderment "
        "boredom contempt curiosity delight disapproval disbelief disgust dismay embarrassment "
        "enthusiasm envy gratitude grief hilarity indifference indignation irritation jealousy joy "
        "mistrust outrage pity pride puzzlement regret relief resentment respect scorn shame sorrow "
        "suspicion sympathy unease wonder"
    ),
    "doing": _list(
        "bargaining baking bathing bookbinding bowling calligraphy carving chess cooking curling "
        "dancing debating distilling draughts drawing embroidery fencing ferreting fishing "
        "flower_pressing fortune-telling gambling gardening gilding grafting hiking hunting juggling "
        "kite-flying knitting mending mushrooming needlework pickling pottery puppetry rambling "
        "reading riding rowing sailing singing skating sketching skittles sledging spinning "
        "stargazing storytelling swimming target_shooting turnery weaving whistling whittling "
        "wrestling yodelling"
    ),
    "place": _list(
        "allotments banks beaches caves cliffs courtyards crossroads dunes dykes embankments fens "
        "ferries fields footpaths fords forests gardens gorges graveyards hedgerows hills hillsides "
        "marshes meadows moors mudflats orchards pastures peat_bogs pine_woods ponds quays ravines "
        "reed_beds riverbanks sandbanks scree_slopes slopes springs terraces thickets towpaths "
        "valleys vineyards water_meadows wells wharves"
    ),
}

_PLURALS = {
    "man": "men",
    "wife": "wives",
    "fe": "ves",
    "ry": "ries",
    "my": "mies",
    "ny": "nies",
    "cy": "cies",
    "ly": "lies",
}


def _plural(word: str) -> str:
    for end, plural in _PLURALS.items():
        if word.endswith(end):
            return word.removesuffix(end) + plural
    return word + ("es" if word.endswith(("ch", "sh", "x")) else "" if word.endswith("s") else "s")


WORDS["trades"] = tuple(map(_plural, WORDS["trade"]))
WORDS["buildings"] = tuple(map(_plural, WORDS["building"]))

# Phrases of these words, of which no question asks.
PHRASES: dict[str, tuple[str, ...]] = {
    "np": (
        "a(n) {adj} {thing}",
        "a(n) {thing} of {adj} {material}",
        "{n} {adj} {things}",
        "{n} {colour} {things}",
        "a(n) {adj} {material} {thing}",
        "a(n) {colour} {thing}",
        "the {adj} {thing} of a(n) {trade}",
        "{things} and {things}",
        "{material} {things}",
    ),
    "spot": (
        "the {building}",
        "a(n) {adj} {building}",
        "the [old|new|former] {building}",
        "a(n) {adj} {masonry} {building}",
        "a(n) {masonry} {building}",
        "the {building} of {house}",
        "the {building} {near_place}",
        "a(n) {adj} {building} {near_place}",
    ),
    "near_place": (
        "[near|beyond|facing|above|beside|behind] the {place}",
        "[near|beyond|facing] {adj} {place}",
    ),
    "near": (
        "{near_place}",
        "[behind|below|beside|facing|near|opposite|past] {spot}",
        "[near|off|behind] {house}",
    ),
    "house": (
        "{street} Lane",
        "{street} Street",
        "{street} House",
        "{street} Yard",
        "{street} Hill",
        "{street} Square",
    ),
    "one": (
        "a(n) {trait} {trade}",
        "a(n) {trade}",
        "a(n) {trade}'s {kin}",
        "a(n) {trade}'s {trait} {kin}",
        "a(n) {trade} with {n} {animals}",
        "a(n) {trade} of {house}",
        "the {trade} [of|from|near] {house}",
    ),
    "who": ("{one}", "{one}", "{one}", "{one}", "{one}", "{n} {trait} {trades}"),
    "when": (
        "one {month}",
        "on a(n) {day} in {month}",
        "in a(n) {weather_adj} {season}",
        "after a(n) {month} {weather}",
        "before the {ordinal} {weather}",
        "in the {weather_adj} {ordinal} week of {month}",
        "during a(n) {weather_adj} {month}",
        "on the {ordinal} of {month}",
        "late one {day}",
        "on a(n) {weather_adj} {day}",
        "{n} {season}s later",
        "amid {feeling} and {weather_adj} weather",
    ),
    "why": (
        "to the {feeling} of {who}",
        "out of {feeling} and {feeling}",
        "half in {feeling}, half in {feeling}",
        "for want of {np}",
        "in return for {np}",
        "with more {feeling} than {feeling}",
        "[paying with|parting with|pawning|promising] {np}",
        "[thinking of|dreaming of|hoping for|forgetting] {np}",
        "[against advice from|to please|to annoy|to outdo] {who}",
        "[helped|advised|hindered|watched|urged on] by {who}",
        "with [help|money|advice|{np}] from {who}",
        "despite {feeling} and {np}",
        "undeterred by {who}",
    ),
    "act": (
        "kept {n} {animals} behind {spot}",
        "collected {np}",
        "mended {np} for {who}",
        "grew {food} and {tree} near {spot}",
        "taught {doing} to {who}",
        "slept {often} in {spot}",
        "walked {often} to {spot}",
        "ate {food} with {food}",
        "planted {tree} along {spot}",
        "argued {often} about {topic}",
        "carried {np} everywhere",
        "bred {colour} {animals}",
        "drew {animals} and {tree}",
        "lectured {often} on {topic}",
        "feared {animals} and {topic}",
        "read {manner} about {topic}",
        "practised {doing} with {who}",
        "spoke {manner} of {np}",
        "swore by {food} and {doing}",
        "never tired of {topic} or {doing}",
        "lived on {food} and {food}",
        "wore a(n) {colour} {garment} of {material}",
    ),
    # What happens once, where `act` goes on.
    "deed": (
        "lost {np} to {who}",
        "sent {n} letters on {topic} to {who}",
        "gave up {doing} {why}",
        "bought {np} from {who}",
        "had {spot} painted {colour}",
        "sold {n} {animals} to {who}",
        "quarrelled with {who} over {np}",
        "inherited {np} from {who}",
        "burnt {n} notebooks on {topic}",
        "crossed {place} and {place} on foot",
        "learnt {doing} from {who}",
        "rented {spot} for {np}",
        "fell ill after {doing} and {food}",
        "spent {n} weeks in {spot}",
        "lent {np} to {who}",
    ),
    "often": (
        "every {day}",
        "[each|every] {month}",
        "every {ordinal} {day}",
        "{manner}",
        "in {weather_adj} weather",
    ),
    "parents": (
        "a(n) {trade} and a(n) {trade}'s {child}",
        "a(n) {trait} {trade} of {house}",
        "a(n) {trade} with {n} {animals}",
        "the {trait} {trade} near {house}",
        "two {trait} {trades}",
        "a(n) {trade} and [a(n) {trait} singer|an heiress to {np}|a widow from {house}]",
    ),
}
