"""Rules for an OpenFlow switch in place of a programmable one, and an emulated switch that runs their text.

`pipeline.py` generates the rules of a rack, `nfs/` has what each kind of NF adds, `rules.py` writes them as `ovs-ofctl`
reads them, `reader.py` and `emulated_switch.py` run them. A switch of this kind knows no service headers: `labels.py`
puts service paths into VLAN tags.
"""
