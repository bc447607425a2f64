"""The words the works are made of."""

TYPES = (
    "journal-article",
    "journal-article",
    "journal-article",
    "book-chapter",
    "proceedings-article",
    "posted-content",
    "peer-review",
    "dataset",
)

# A publisher and its number as a member of Crossref.
PUBLISHERS = (
    ("Society of Synthetic Biology", "7001"),
    ("Sandbox University Press", "7002"),
    ("Institut für Beispieldaten", "7003"),
    ("Éditions du Bac à Sable", "7004"),
    ("示例出版社", "7005"),
)

SUBJECTS = (
    "Hematology",
    "Soil Science",
    "Applied Acoustics",
    "Information Retrieval",
    "Palaeontology",
    "Plant Pathology & Physiology",
    "Number Theory",
    "Urban Ecology",
    "Oceanography",
    "Medical Imaging",
    "Colloid Chemistry",
    "Library and Information Sciences",
)

GIVEN = ("Ada", "Björn", "Chinwe", "Dmitri", "Eun-ji", "Françoise", "Łukasz", "María", "Noor", "伟")

FAMILY = (
    "Ångström",
    "Banerjee",
    "Çelik",
    "Dvořák",
    "Fernández-Ruiz",
    "Kowalczyk",
    "Müller",
    "Nakamura",
    "O'Neill",
    "Okafor",
    "van den Berg",
    "张",
)

PLACES_OF_WORK = (
    "Department of Botany, University of Nowhere, Nowhere, Atlantis",
    "Institute of Examples, Technical University of Testing, Sandstadt, Germany",
    "School of Medicine, Placeholder College, 1 Sample Street, Springfield, USA",
    "Laboratoire des Données Fictives, CNRS UMR 0000, Ville-Exemple, France",
    "Centre for Imaginary Numbers, i² Campus, Minus One",
)

ADJECTIVES = (
    "Adaptive",
    "Seasonal",
    "Non-linear",
    "Long-term",
    "Comparative",
    "Unexpected",
    "Hierarchical",
    "Quantitative",
    "Reversible",
    "Early",
    "Genome-wide",
    "Low-cost",
)

NOUNS = (
    "responses",
    "lattices",
    "migration patterns",
    "gene expression",
    "risk factors",
    "sediment transport",
    "citation networks",
    "catalysts",
    "lesion detection",
    "prime gaps",
    "pollinators",
    "metadata quality",
)

PLACES = (
    "alpine soils",
    "red blood cells",
    "coastal cities",
    "sparse graphs",
    "open archives",
    "tropical forests",
    "mouse models",
    "thin films",
    "rural clinics",
    "deep water",
    "finite fields",
    "urban noise",
)

# Sentences of abstracts: markup, quotes, entities and signs that careless writers break.
SENTENCES = (
    "We measured the effect in 412 samples over three seasons (p < 0.05).",
    "Results were robust to the choice of the prior, and no dose-response relation was found.",
    "The so-called “sandbox effect” explains 38 % of the variance; R² = 0.61.",
    "Temperatures between −4 °C and 37 °C were kept constant to ±0.1 K.",
    "Earlier work by <jats:italic>Müller et al.</jats:italic> reported the opposite.",
    "All data are available under an open licence; see the supplement & the code archive.",
    'Interviewees described the change as "slow, then sudden".',
    "Further research is needed to separate α-type from β-type responses.",
    "The proposed index outperforms five baselines on two public collections.",
    "Mortality fell from 12.3 to 9.8 per 1000 (95% CI 9.1–10.4).",
)
