"""Packs in and out of the `reg_*` tables, and the dictionary of codes (`sys_dict_*`)."""
