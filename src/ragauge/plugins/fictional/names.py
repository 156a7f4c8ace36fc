"""Invented proper names by number, distinct within a kind.

A name is consonants, vowels, consonants and an ending that begins with a vowel, so that it falls apart in one
way only: different parts are different names. A region of the world takes numbers that no other takes, by
which names are unique in a world of any size without a list of those that are taken.
"""

from __future__ import annotations

import math

from ragauge.plugins.fictional.dice import Dice


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words(
    "b bl br c cl cr d dr dw f fl fr g gl gr h j k kl kr l m n p pl pr r s sk sl sm sn sp st str sv t th "
    "tr tw v vl "
    "w z zl"
)
_NUCLEI = _words("a e i o u ae au ei ou")
_MEDIALS = _words(
    "b d g k l m n r s t v z ld lg lm lv mb mbr nd ndr ng nv rb rd rg rl rm rn rsk rth rv sk skr sl st "
    "str thr tt "
    "vr zd zm bl dl gn lk pt ft"
)
_ENDINGS = {
    "surname": _words(
        "adrane akel andrel arv atho aveth edrin eloy eppel ervik esco eskel etho evrin "
        "ibald "
        "idane igorn irvold ivar oben odrel ogan olmar olvane omerel ondal oppen ordine orveth osk "
        "otham "
        "ovell ubrel uldan umber undrik urgan usk ustane uthel uvane"
    ),
    "town": _words(
        "admoor alcombe ammen ardell asted avenne ebrook edge elmund erwick estow evale ibeck "
        "ickford inster irmouth isham ivern oakley ombrey ondham orough ostead oxley uckle uldby umstead "
        "undry urnow ushford"
    ),
    "firm": _words(
        "acordo adextra arrovi avixo elcond endovar erixal evondo ilexor imarco incovar ivodel odexil ondavi "
        "orovax ovaxo ubolex unovar urixon uvondel"
    ),
    "river": _words("ambre asker erlin esk ilva immer obre ondel orvel ossel uste urne"),
    "province": _words(
        "agmark andshire anwold aswold eldmark elmarch ermarch evlands idlands ithmark odlands orshire "
        "ulmarch unwold"
    ),
}  # fmt: skip
_MALE = _words(
    "adrel amon anko aveld egor erek esto evrand idor igan ilgar imon irro ivan obrin odin ombard onder "
    "orvek osko "
    "umond urek"
)
_FEMALE = _words(
    "abel adine amelle amira ariel aveda avelle erith etha ethine evanthe ilde irela issel odine ondrine "
    "oriel ovenne "
    "udith umira urela"
)
_STREETS = _words("abry ansby edgley elby imsey ombley otley uckley")
_GIVEN_ONSETS = _words("b br d dr f g gr h j k l m n p pr r s sk st t th tr v z")
_GIVEN_NUCLEI = _words("a e i o u ae au")
_GIVEN_MEDIALS = _words("b d g l ld lm lv m n nd r rd rl rn rv s sk st t v z zd")
GIVEN_NAMES = 240  # of each gender in one world


def space(kind: str) -> int:
    """The number of different names of a kind."""
    return len(_ONSETS) * len(_NUCLEI) * len(_MEDIALS) * len(_ENDINGS[kind])


class Names:
    """The names of one world, determined by its seed."""

    def __init__(self, seed: int) -> None:
        dice = Dice(seed, "names")
        self._steps: dict[str, tuple[int, int, int]] = {}
        for kind in _ENDINGS:
            size = space(kind)
            # Steps of about the golden section spread neighbouring numbers over all parts of a name.
            step = int(size * (0.55 + 0.13 * dice.random()))
            while math.gcd(step, size) != 1:
                step += 1
            self._steps[kind] = (step, dice.below(size), size)
        self.male = _given(dice, _MALE)
        self.female = _given(dice, _FEMALE)

    def name(self, kind: str, number: int) -> str:
        """The name of a number from 0 to space(kind) - 1."""
        step, start, size = self._steps[kind]
        if number >= size:
            raise ValueError(f"there are {size} names of a {kind}, number {number} is none of them")
        return _spell((number * step + start) % size, _ONSETS, _NUCLEI, _MEDIALS, _ENDINGS[kind])


def street(dice: Dice) -> str:
    """A name for a thing mentioned once and never asked for (a street, a house); it may repeat."""
    return _join(dice.pick(_ONSETS), dice.pick(_NUCLEI), dice.pick(_MEDIALS), dice.pick(_STREETS))


def _given(dice: Dice, endings: tuple[str, ...]) -> list[str]:
    taken: dict[str, None] = {}
    while len(taken) < GIVEN_NAMES:
        parts = [dice.pick(p) for p in (_GIVEN_ONSETS, _GIVEN_NUCLEI, _GIVEN_MEDIALS, endings)]
        taken[_join(*parts)] = None
    return list(taken)


def _spell(number: int, *parts: tuple[str, ...]) -> str:
    chosen = []
    for part in parts:
        number, at = divmod(number, len(part))
        chosen.append(part[at])
    return _join(*chosen)


def _join(*parts: str) -> str:
    return "".join(parts).capitalize()
