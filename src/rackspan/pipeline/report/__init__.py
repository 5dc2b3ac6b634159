"""The report: one HTML page that says whether each cluster of a warehouse survives the loss of a rack, and why not.

Begin with data.py (the content of a page), then page.py (how it is drawn). words.py has its sentences, svg.py, timeline.py
and flow_picture.py its pictures. topic_map.py computes the data of the latest snapshot with rackspan.audit, aggregates.py and summaries.py those of
the tables with Arrow; traffic/ has the part that needs readings, from_warehouse.py reads the files. The page needs no script, font or picture from elsewhere, so it opens
without a network. No rule is defined here, and nothing needs Spark.
"""

from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.page import render
from rackspan.pipeline.report.write import write_report

__all__ = ["ReportData", "render", "write_report"]
