"""The report: one HTML page that says whether each cluster of a warehouse survives the loss of a rack, and why not.

Begin with data.py (what a page tells), then page.py (how it is drawn). words.py holds its sentences, svg.py and
timeline.py its pictures. topic_map.py and summaries.py fill the data, the first from one snapshot by the judge of
`audit`, the second from the tables by Spark; from_warehouse.py knows which files those are. The page stands alone: no
script, font or picture from elsewhere, so it opens without a network. Nothing is judged here. `from_warehouse` and
`summaries` need Spark, so they are imported only when a report is made.
"""

from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.page import render
from rackspan.pipeline.report.write import write_report

__all__ = ["ReportData", "render", "write_report"]
