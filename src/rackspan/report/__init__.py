"""The report: one HTML page that says whether a cluster survives the loss of a rack, and why not.

Begin with data.py (the content of a page), then page.py (how it is drawn). words.py has its sentences, svg.py, timeline.py
and flow_picture.py its pictures. from_snapshot.py makes the content from an audit of one snapshot; that of a warehouse is made by
rackspan.pipeline. The page needs no script, font or picture from elsewhere, so it opens without a network. No rule is defined here,
and nothing needs Spark or Arrow.
Depends on: advice, audit, model, traffic.
"""

from rackspan.report.data import ReportData
from rackspan.report.page import render
from rackspan.report.write import write_report

__all__ = ["ReportData", "render", "write_report"]
